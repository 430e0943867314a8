import {
  DEFAULT_BREAKER,
  NEW_BREAKER,
  afterProbe,
  afterReport,
  claimProbe,
  decisionAt,
  holdsProbe,
  isFailing,
  recordAttempt,
  passageOf,
  renewProbe,
} from '../../shared/domain/breaker.ts';
import type { Breaker, BreakerSettings, ProbeResult, Slice } from '../../shared/domain/breaker.ts';
import type { Emitter } from '../../shared/lifecycle/event-bus.ts';
import type { WorkerEvents } from './worker-events.ts';
import { Stopped } from './stage.ts';
import { ProviderTimeout } from './run-provider-call.ts';
import { ProviderError } from '../providers/provider.ts';
import type { ProviderFault } from '../providers/provider.ts';

/** Why a call ended, in one word for timelines and breakers: the provider's own text must not reach the caller. */
export function failureReason(error: unknown): string {
  if (error instanceof ProviderTimeout) return 'timeout';
  if (error instanceof ProviderError)
    return error.status === undefined ? 'connection_or_format' : `status_${error.status}`;
  return error instanceof Stopped ? error.reason : 'failed';
}

/** A failed call says this about its provider. `void`: nothing, because the call was stopped or was itself wrong. */
export type FailureClass = { kind: 'void' } | { kind: 'failed'; reason: string } | { kind: 'refused'; reason: string };

/** The provider refuses everything until somebody fixes our account (docs/spec.md#routing). */
const REFUSALS: ReadonlyMap<number | undefined, string> = new Map([
  [401, 'authentication'],
  [402, 'payment_required'],
  [403, 'forbidden'],
]);

const COUNTED: ReadonlySet<ProviderFault> = new Set(['transient', 'silent', 'blocked']);

/**
 * Network failures, time limits, firewalls, 408, 409, 429, 5xx and broken answers count; the caller's mistakes never
 * do.
 */
export function classifyFailure(error: unknown): FailureClass {
  if (!(error instanceof ProviderError)) return { kind: 'void' };
  const refusal = error.fault === 'refused' ? REFUSALS.get(error.status) : undefined;
  if (refusal !== undefined) return { kind: 'refused', reason: refusal };
  // Other refusals, such as an unknown model, concern one target, not the whole provider.
  return COUNTED.has(error.fault) ? { kind: 'failed', reason: failureReason(error) } : { kind: 'void' };
}

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

interface CallReportsDeps {
  /** Reports to all workers. Never rejects. */
  send(calls: Unreported): Promise<void>;
  /** When the breaker decides on the reports so far; undefined: they are not enough to open it. */
  decisionAt(): number | undefined;
  /** Redis's clock. */
  now(): number;
}

/** Counts one worker's calls to a provider within the breaker's window, and reports them soon after a failure. */
function createCallReports({ send, decisionAt, now }: CallReportsDeps) {
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
    /** `reason`: why the call failed. */
    recordCall(reason: string | undefined, windowMs: number): void {
      recordAttempt(unreported.slices, reason, windowMs, now());
      if (reason !== undefined) sendIn(0);
    },

    /** Reports at once. */
    recordRefusal(reason: string): void {
      unreported.refusal = reason;
      void sendNow();
    },

    /** Reports what has been counted, as soon as REPORT_GAP_MS allows. */
    sendSoon(): void {
      if (unreported.slices.length > 0) sendIn(0);
    },

    forget(): void {
      unreported = nothing();
    },

    stop(): void {
      isStopped = true;
      clearTimeout(timer);
    },
  };
}

/** The provider was not called: its circuit breaker is open, or half open and another request is its probe. */
export class BreakerOpenError extends Error {
  override readonly name = 'BreakerOpenError';
  /** When another try may succeed, in milliseconds. */
  readonly retryInMs: number;

  constructor(provider: string, retryInMs: number) {
    super(`The circuit breaker of ${provider} is open`);
    this.retryInMs = retryInMs;
  }
}

export interface CircuitDeps {
  provider: string;
  /** Changes the shared state and resolves to the result; rejects while Redis is unavailable. */
  change(next: (current: Breaker, now: number) => Breaker): Promise<Breaker>;
  classify(error: unknown): FailureClass;
  /** A name for a probe, unique across workers. */
  newHolder(): string;
  /** Redis's clock. */
  now(): number;
  events: Emitter<WorkerEvents>;
}

/** One worker's side of a provider's circuit breaker. */
export type Circuit = ReturnType<typeof createCircuit>;

interface Probe {
  holder: string;
  /** When its first text came. */
  textSince?: number;
}

/** A probe that has sent text for this long has succeeded, so that a long answer does not hold up other calls. */
const PROVEN_MS = 5_000;

const OK: ProbeResult = { kind: 'ok' };

type Decide = (next: (current: Breaker, time: number) => Breaker) => Promise<void>;

interface ProbesDeps extends Pick<CircuitDeps, 'provider' | 'newHolder' | 'now'> {
  view: () => Breaker;
  decide: Decide;
  settings: () => BreakerSettings;
}

/** The one call at a time that this worker may make while the breaker is not closed. */
function createProbes({ view, decide, settings, provider, newHolder, now }: ProbesDeps) {
  let claiming = false;
  let probe: Probe | undefined;

  function end(ended: Probe, result: ProbeResult): void {
    // This probe has already ended, perhaps successfully.
    if (probe !== ended) return;
    probe = undefined;
    void decide((current, time) => afterProbe(current, ended.holder, result, settings(), time));
  }

  return {
    end,
    isOpen: (own: Probe | undefined): own is Probe => own !== undefined && probe === own,

    /** Becomes the probe, or throws BreakerOpenError. Undefined: the breaker has closed in the meantime. */
    async enter(): Promise<Probe | undefined> {
      const passage = passageOf(view(), now());
      if (passage.kind === 'wait') throw new BreakerOpenError(provider, passage.ms);
      if (claiming) throw new BreakerOpenError(provider, 1_000);
      claiming = true;
      const holder = newHolder();
      try {
        await decide((current, time) => claimProbe(current, holder, time));
      } finally {
        claiming = false;
      }
      if (view().state === 'closed') return undefined;
      if (holdsProbe(view(), holder)) return (probe = { holder });
      const next = passageOf(view(), now());
      throw new BreakerOpenError(provider, next.kind === 'wait' ? next.ms : 1_000);
    },

    /** Renews the probe's lease, or ends a probe that has proven the provider. */
    tick(): void {
      if (probe === undefined) return;
      const { holder, textSince } = probe;
      if (textSince !== undefined && now() - textSince >= PROVEN_MS) end(probe, OK);
      else void decide((current, time) => renewProbe(current, holder, time));
    },
  };
}

/**
 * A call to a healthy provider needs no call to Redis: successes within the window are counted here and reported only
 * when a call fails, here or in another worker.
 */
export function createCircuit({ change, classify, newHolder, now, events, provider }: CircuitDeps) {
  let view: Breaker = NEW_BREAKER;
  let settings: BreakerSettings = DEFAULT_BREAKER;
  const reports = createCallReports({
    send: (calls) => decide((current, time) => afterReport(current, calls, settings, time)),
    decisionAt: () => decisionAt(view, settings, now()),
    now,
  });
  const probes = createProbes({ view: () => view, decide, settings: () => settings, provider, newHolder, now });

  function adopt(breaker: Breaker): void {
    const before = view;
    view = breaker;
    if (view.state !== before.state) events.emit('breaker.seen', provider, view.state);
    if (view.state !== 'closed') {
      // When the breaker closes, a new window begins; it must not include earlier calls.
      reports.forget();
    } else if (view.failingSince !== before.failingSince) reports.sendSoon();
  }

  /** Applies a transition for all workers, or for this worker alone while Redis is unavailable. */
  async function decide(next: Parameters<Decide>[0]): Promise<void> {
    adopt(await change(next).catch(() => next(view, now())));
  }

  function settle(own: Probe | undefined, verdict: FailureClass | undefined): void {
    if (probes.isOpen(own)) {
      if (verdict === undefined) probes.end(own, OK);
      else probes.end(own, verdict.kind === 'void' ? verdict : { kind: 'failed', reason: verdict.reason });
      return;
    }
    if (view.state !== 'closed' || verdict?.kind === 'void') return;
    if (verdict?.kind === 'refused') reports.recordRefusal(verdict.reason);
    else reports.recordCall(verdict?.reason, settings.windowMs);
  }

  events.emit('breaker.seen', provider, view.state);
  return {
    /** Adopts the state that all workers share. */
    adopt,
    /** Whether a call would be made at the moment, as far as this worker knows. */
    isPassable: (): boolean => passageOf(view, now()).kind !== 'wait',
    isClosed: (): boolean => view.state === 'closed',

    /** Makes a call that counts, or throws BreakerOpenError without making it. */
    async guard<T>(wanted: BreakerSettings | undefined, call: (onText: () => void) => Promise<T>): Promise<T> {
      settings = wanted ?? DEFAULT_BREAKER;
      const own = view.state === 'closed' ? undefined : await probes.enter();
      const onText = () => {
        if (own !== undefined) own.textSince ??= now();
      };
      try {
        const result = await call(onText);
        settle(own, undefined);
        return result;
      } catch (error) {
        settle(own, classify(error));
        throw error;
      }
    },

    /** Called about once a second: renews or ends a probe, reports what is due. */
    tick(): void {
      probes.tick();
      if (isFailing(view, settings, now())) reports.sendSoon();
    },

    stop: reports.stop,
  };
}
