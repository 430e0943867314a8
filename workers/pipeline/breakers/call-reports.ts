import { noteAttempt } from '../../../shared/domain/routing/attempt-window.ts';
import type { Slice } from '../../../shared/domain/routing/attempt-window.ts';

/** Minimum time between two reports of one worker. */
const REPORT_GAP_MS = 50;

/** Calls to a provider that the other workers do not know about yet. */
interface Unreported {
  slices: Slice[];
  /** Why the provider refused the latest call that it refused. */
  refusal: string | undefined;
}

const nothing = (): Unreported => ({ slices: [], refusal: undefined });

function hasFailures({ slices, refusal }: Unreported): boolean {
  return refusal !== undefined || slices.some(({ failed }) => Object.keys(failed).length > 0);
}

export interface CallReportsDeps {
  /** Reports to all workers. Never rejects. */
  send(calls: Unreported): Promise<void>;
  /** When the breaker decides on the reports so far; undefined: they are not enough to open it. */
  decisionAt(): number | undefined;
  /** Redis's clock. */
  now(): number;
}

/** Counts one worker's calls to a provider within the breaker's window, and reports them soon after a failure. */
export interface CallReports {
  /** `reason`: why the call failed. */
  noteCall(reason: string | undefined, windowMs: number): void;
  /** Reports at once. */
  noteRefusal(reason: string): void;
  /** Reports what has been counted, as soon as REPORT_GAP_MS allows. */
  sendSoon(): void;
  forget(): void;
  stop(): void;
}

export function createCallReports({ send, decisionAt, now }: CallReportsDeps): CallReports {
  let unreported = nothing();
  let isSending = false;
  let sentAt = 0;
  let timer: NodeJS.Timeout | undefined;
  let timerAt = 0;
  let isStopped = false;

  function sendIn(ms: number): void {
    const at = now();
    // The clock may have been set back since the last report, or since the timer was set.
    const wait = Math.max(ms, Math.min(REPORT_GAP_MS, sentAt + REPORT_GAP_MS - at));
    if (isStopped || (timer !== undefined && timerAt <= at + wait)) return;
    clearTimeout(timer);
    timerAt = at + wait;
    timer = setTimeout(() => {
      timer = undefined;
      void sendNow();
    }, wait);
    timer.unref();
  }

  async function sendNow(): Promise<void> {
    // Calls noted while a report is being sent go out with the next one.
    if (isSending) return;
    const calls = unreported;
    unreported = nothing();
    isSending = true;
    sentAt = now();
    await send(calls);
    isSending = false;
    const dueAt = decisionAt();
    if (unreported.refusal !== undefined) void sendNow();
    else if (hasFailures(unreported)) sendIn(0);
    else if (dueAt !== undefined) sendIn(dueAt - now());
  }

  return {
    noteCall(reason, windowMs) {
      noteAttempt(unreported.slices, reason, windowMs, now());
      if (reason !== undefined) sendIn(0);
    },

    noteRefusal(reason) {
      unreported.refusal = reason;
      void sendNow();
    },

    sendSoon() {
      if (unreported.slices.length > 0) sendIn(0);
    },

    forget() {
      unreported = nothing();
    },

    stop() {
      isStopped = true;
      clearTimeout(timer);
    },
  };
}
