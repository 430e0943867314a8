/**
 * The update that changes fields of a row: undefined leaves a field as it is, null takes it away. `nullable`: the fields
 * for which null is a value. MongoDB refuses an operator without fields, so one that has nothing to do is absent.
 */
export function toFieldUpdate(
  changes: object,
  nullable: ReadonlySet<string> = new Set(),
): { $set?: object; $unset?: object } {
  const given: [string, unknown][] = Object.entries(changes).filter(([, value]) => value !== undefined);
  const set = given.filter(([name, value]) => value !== null || nullable.has(name));
  const removed = given.filter((entry) => !set.includes(entry)).map(([name]) => [name, 1] as const);
  return {
    ...(set.length === 0 ? {} : { $set: Object.fromEntries(set) }),
    ...(removed.length === 0 ? {} : { $unset: Object.fromEntries(removed) }),
  };
}
