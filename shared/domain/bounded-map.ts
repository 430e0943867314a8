/** Sets an entry and drops the oldest one beyond `max`. Setting an entry again does not make it younger. */
export function putNewest<Value>(map: Map<string, Value>, key: string, value: Value, max: number): void {
  map.set(key, value);
  const oldest = map.keys().next();
  if (map.size > max && oldest.done !== true) map.delete(oldest.value);
}
