/** Between two tries; most of what is awaited comes soon, and a try asks a store. */
const FIRST_PAUSE_MS = 5;
const LONGEST_PAUSE_MS = 60;

/** Tries until `check` returns something; fails after `timeoutMs`, which a machine that is busy may need. */
export async function waitFor<T>(
  check: () => Promise<T | null | undefined> | T | null | undefined,
  what: string,
  timeoutMs = 30_000,
): Promise<T> {
  const until = Date.now() + timeoutMs;
  for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(pauseMs * 1.3, LONGEST_PAUSE_MS)) {
    const value = await check();
    if (value !== undefined && value !== null) return value;
    if (Date.now() > until) throw new Error(`Waited in vain for ${what}`);
    await new Promise((resolve) => setTimeout(resolve, pauseMs));
  }
}

/** Tries until `check` holds. */
export async function waitUntil(
  check: () => boolean | Promise<boolean>,
  what: string,
  timeoutMs?: number,
): Promise<true> {
  return waitFor(async () => ((await check()) ? (true as const) : undefined), what, timeoutMs);
}
