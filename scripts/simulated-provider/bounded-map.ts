/**
 * Sets a key, and forgets the oldest ones above `max`: the provider runs for days in benchmarks and must not grow. Setting a
 * key again does not make it younger.
 */
export function setBounded<V>(map: Map<string, V>, key: string, value: V, max: number): void {
  map.set(key, value);
  for (const oldest of map.keys()) {
    if (map.size <= max) return;
    map.delete(oldest);
  }
}
