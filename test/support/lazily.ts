/** What a hook makes, once it has. */
export interface Started<T extends object> {
  value: T | undefined;
}

/** Stands for what a hook makes later. */
export function lazily<T extends object>(started: Started<T>, name: string): T {
  const read = (): T => {
    if (started.value !== undefined) return started.value;
    throw new Error(`The ${name} is there only once the hooks have run: use it inside of a test.`);
  };
  // Connections look at what they are called on.
  const get = (_empty: unknown, property: string | symbol): unknown => {
    const found = Reflect.get(read(), property) as unknown;
    // An Express app is a function with fields of its own, which a bound one would not have.
    const isMethod = typeof found === 'function' && Object.keys(found).length === 0;
    return isMethod ? (found.bind(read()) as unknown) : found;
  };
  return new Proxy<Partial<T>>({}, { get }) as T;
}
