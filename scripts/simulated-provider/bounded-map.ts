/** A map that forgets its oldest entries, because the provider runs for days in benchmarks and must not grow. */
export interface BoundedMap<V> {
  get(key: string): V | undefined;
  /** Setting a key again does not make it younger. */
  set(key: string, value: V): void;
  delete(key: string): boolean;
  clear(): void;
  entries(): IterableIterator<[string, V]>;
  readonly size: number;
}

export function createBoundedMap<V>(entriesMax: number): BoundedMap<V> {
  const map = new Map<string, V>();
  return {
    get: (key) => map.get(key),
    set(key, value) {
      map.set(key, value);
      if (map.size <= entriesMax) return;
      for (const oldest of map.keys()) {
        map.delete(oldest);
        return;
      }
    },
    delete: (key) => map.delete(key),
    clear() {
      map.clear();
    },
    entries: () => map.entries(),
    get size() {
      return map.size;
    },
  };
}
