/** Gives up waiting for `call` after a time, counted from now; what it does may still happen. Rejects with `sentence`. */
export async function withTimeLimit<Result>(
  call: Result | Promise<Result>,
  limitMs: number,
  sentence: string,
): Promise<Result> {
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(() => {
    late.reject(new Error(sentence));
  }, limitMs);
  try {
    return await Promise.race([call, late.promise]);
  } finally {
    clearTimeout(timer);
  }
}

/** The one place where a process reads its clock, so that tests can hand in their own. */
export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number;
}

export const systemClock: Clock = { now: () => Date.now() };
