/** Tries until `check` returns something; fails after `timeoutMs`, which a machine that is busy may need. */
export async function waitFor<T>(
  check: () => Promise<T | null | undefined> | T | null | undefined,
  what: string,
  timeoutMs = 30_000,
): Promise<T> {
  const until = Date.now() + timeoutMs;
  for (;;) {
    const value = await check();
    if (value !== undefined && value !== null) return value;
    if (Date.now() > until) throw new Error(`Waited in vain for ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
