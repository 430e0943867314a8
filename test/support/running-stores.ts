/** What globalSetup has started, for globalTeardown: jest loads the two apart, so only a global joins them. */
export interface RunningStores {
  dataDir: string;
  /** In the order they were started. */
  servers: { stop(): Promise<void> }[];
  /** How many setups ask for the stores; the last teardown ends them. */
  users: number;
}

const KEY = Symbol.for('parley.test.stores');
// The types know nothing of a global that only this file sets.
const holder = globalThis as { [KEY]?: RunningStores | undefined };

export function rememberedStores(): RunningStores | undefined {
  return holder[KEY];
}

export function rememberStores(dataDir: string): RunningStores {
  return (holder[KEY] = { dataDir, servers: [], users: 1 });
}

export function forgetStores(): void {
  holder[KEY] = undefined;
}
