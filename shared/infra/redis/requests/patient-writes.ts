import { setTimeout as pause } from 'node:timers/promises';

/** For so long after its return nothing is known of claims that Redis came back without, or that are being given back. */
const CLAIMS_BACK_MS = 1_500;
const AGAIN_MS = 100;
/** A master that is away for longer, of several, is no reason to wait for ever. */
const TRIES_MAX = 20;

/** Writes once more, a moment later, what was refused because another attempt owns the request. */
export type PatientWrite = <Outcome>(
  write: () => Promise<Outcome>,
  isRefused: (outcome: Outcome) => boolean,
) => Promise<Outcome>;

/**
 * A call that takes jobs and was under way when the connection broke is sent again once Redis is back. Where Redis came back
 * without the claims of requests that run, that call claims them for a worker which gives them back at once
 * (job-store.ts). An attempt that writes in between would be refused, and a stream end whose worker lives.
 */
export function createPatientWrite(hasReconnectedRecently: (withinMs: number) => boolean): PatientWrite {
  return async (write, isRefused) => {
    for (let tries = 1; ; tries += 1) {
      const outcome = await write();
      if (!isRefused(outcome) || tries === TRIES_MAX || !hasReconnectedRecently(CLAIMS_BACK_MS)) return outcome;
      await pause(AGAIN_MS);
    }
  };
}
