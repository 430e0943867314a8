/** Stops waiting for `call` after `limitMs` and rejects with `sentence`, as a `Fault`; what the call does may still happen. */
export function withTimeLimit<Result>(
  call: Result | Promise<Result>,
  limitMs: number,
  sentence: string,
  Fault: new (message: string) => Error = Error,
): Promise<Result> {
  // Every call to a store passes through here: Promise.race would make four more promises.
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      reject(new Fault(sentence));
    }, limitMs);
    const settle = () => {
      clearTimeout(timer);
      resolve(call);
    };
    Promise.resolve(call).then(settle, settle);
  });
}

/** The one place where a process reads its clock, so that tests can hand in their own. */
export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number;
}

export const systemClock: Clock = { now: () => Date.now() };
