/** Whether a process can serve: each check by name, `ok` or why not. */
export interface Readiness {
  check(): Promise<{ ready: boolean; checks: Record<string, string> }>;
}

export type Check = () => Promise<unknown>;

async function outcomeOf(check: Check, timeoutMs: number): Promise<string> {
  const late = new Promise<string>((resolve) =>
    setTimeout(resolve, timeoutMs, `no answer within ${timeoutMs} ms`).unref(),
  );
  const answer = check().then(
    () => 'ok',
    (error: unknown) => (error instanceof Error ? error.message : 'failed'),
  );
  return Promise.race([answer, late]);
}

/** A check passes when its promise resolves within `timeoutMs`. */
export function createReadiness(checks: Record<string, Check>, timeoutMs = 1_000): Readiness {
  return {
    async check() {
      const entries = Object.entries(checks);
      const outcomes = await Promise.all(
        entries.map(async ([name, check]) => [name, await outcomeOf(check, timeoutMs)] as const),
      );
      return { ready: outcomes.every(([, outcome]) => outcome === 'ok'), checks: Object.fromEntries(outcomes) };
    },
  };
}
