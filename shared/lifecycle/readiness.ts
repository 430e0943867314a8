export type Readiness = ReturnType<typeof createReadiness>;

interface ReadyState {
  ready: boolean;
  checks: Record<string, string>;
}

/** Tells a load balancer whether to send requests to this ingress; asks no store. */
export type Serving = ReturnType<typeof createServing>;

/**
 * A store that is away is away for every ingress: if each stopped being ready, callers would get a proxy's page instead
 * of a typed 503, and known keys and open streams would lose what still works. So an ingress is ready from the end of
 * its start to the beginning of its stop. `onWait` is called when the start has to wait.
 */
export function createServing(onWait: () => void = () => undefined) {
  let checks: Record<string, string> = { process: 'it is starting' };
  let isStopping = false;
  const check = (): Promise<ReadyState> => Promise.resolve({ ready: Object.keys(checks).length === 0, checks });
  return {
    check,
    details: check,
    /** `reasons`, by name, keep the process from serving; none: it serves. */
    waitFor(reasons: Record<string, string>): void {
      if (isStopping) return;
      checks = reasons;
      if (Object.keys(reasons).length > 0) onWait();
    },
    stop(): void {
      checks = { process: 'it is stopping' };
      isStopping = true;
    },
    isStopping: (): boolean => isStopping,
  };
}

export type Check = () => Promise<unknown>;

interface Outcome {
  name: string;
  word: 'ok' | 'unavailable' | 'no answer in time';
  detail: string;
}

async function outcomeOf(name: string, check: Check, timeoutMs: number): Promise<Outcome> {
  const late = new Promise<Outcome>((resolve) => {
    const outcome = { name, word: 'no answer in time', detail: `no answer within ${timeoutMs} ms` } as const;
    setTimeout(resolve, timeoutMs, outcome).unref();
  });
  const answer = check().then(
    (): Outcome => ({ name, word: 'ok', detail: 'ok' }),
    (error: unknown): Outcome => ({
      name,
      word: 'unavailable',
      detail: error instanceof Error ? error.message : 'failed',
    }),
  );
  return Promise.race([answer, late]);
}

export interface ReadinessTimes {
  timeoutMs?: number;
  /** Anybody may ask, so the stores are asked at most once in this time. */
  freshMs?: number;
}

/** A check passes when its promise resolves within `timeoutMs`. */
export function createReadiness(
  checks: Record<string, Check>,
  { timeoutMs = 1_000, freshMs = 1_000 }: ReadinessTimes = {},
) {
  let last: Promise<Outcome[]> | undefined;
  let askedAt = -Infinity;

  function ask(): Promise<Outcome[]> {
    if (last !== undefined && performance.now() - askedAt < freshMs) return last;
    askedAt = performance.now();
    last = Promise.all(Object.entries(checks).map(([name, check]) => outcomeOf(name, check, timeoutMs)));
    return last;
  }

  async function stateBy(text: (outcome: Outcome) => string): Promise<ReadyState> {
    const outcomes = await ask();
    return {
      ready: outcomes.every(({ word }) => word === 'ok'),
      checks: Object.fromEntries(outcomes.map((outcome) => [outcome.name, text(outcome)])),
    };
  }

  return {
    /** Each check by name: `ok`, or the fault in words that anybody may read. */
    check: (): Promise<ReadyState> => stateBy(({ word }) => word),
    /** The same with the stores' own words, for operators. */
    details: (): Promise<ReadyState> => stateBy(({ detail }) => detail),
  };
}
