/**
 * Circuit breakers: one for each provider, shared by all workers. The rules are pure transitions in
 * shared/domain/breaker.ts; Lua only compares and sets (docs/decisions/0010-circuit-breaker.md).
 *
 * A call to a healthy provider reads a variable and counts in the process. The first failure goes to Redis and is
 * published: all workers then send what they counted in the window, and after 250 ms the reporting worker decides. A
 * probe has a lease of 10 s, renewed while its call runs. While Redis is away each worker decides alone, by the same
 * rules, and takes over the fleet's state afterwards.
 */
import {
  NEW_BREAKER,
  DEFAULT_BREAKER,
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
import type { Provider } from '../../shared/domain/routing.ts';
import type { Logger } from '../../shared/logging/logger.ts';
import type { BreakerStore } from '../../shared/redis/stores/breaker-store.ts';
import { createBriefCalls, inTime } from '../../shared/redis/time-limits.ts';
import { repeat } from '../../shared/lifecycle/clock.ts';
import type { Clock } from '../../shared/lifecycle/clock.ts';
import type { Emitter } from '../../shared/lifecycle/event-bus.ts';
import type { WorkerEvents } from './worker-events.ts';
import { classifyFailure } from './run-provider-call.ts';
import type { FailureClass } from './run-provider-call.ts';

const REPORT_GAP_MS = 50;

/** Calls to a provider that the other workers do not know about yet. */
interface Unreported {
  slices: Slice[];
  refusal: string | undefined;
}

const nothing = (): Unreported => ({ slices: [], refusal: undefined });

function hasFailures({ slices, refusal }: Unreported): boolean {
  return refusal !== undefined || slices.some(({ failed }) => Object.keys(failed).length > 0);
}

/** Acts at the earliest of the times that it was started for. */
function createEarliestTimer(act: () => void, now: () => number) {
  let timer: NodeJS.Timeout | undefined;
  let timerAt = 0;
  let isStopped = false;
  return {
    startIn(ms: number): void {
      const at = now() + ms;
      if (isStopped || (timer !== undefined && timerAt <= at)) return;
      clearTimeout(timer);
      timerAt = at;
      timer = setTimeout(() => {
        timer = undefined;
        act();
      }, ms).unref();
    },
    stop(): void {
      isStopped = true;
      clearTimeout(timer);
    },
  };
}

interface CallReportsDeps {
  /** Reports to all workers. Never rejects. */
  send(calls: Unreported): Promise<void>;
  /** The breaker decides then on the reports so far; undefined: they are not enough to open it. */
  decisionAt(): number | undefined;
  /** Redis's clock. */
  now(): number;
}

/** Counts one worker's calls to a provider within the breaker's window, and reports them soon after a failure. */
function createCallReports({ send, decisionAt, now }: CallReportsDeps) {
  let unreported = nothing();
  let isSending = false;
  let sentAt = 0;
  const timer = createEarliestTimer(() => void sendNow(), now);

  function sendIn(ms: number): void {
    // The clock may have been set back since the last report, or since the timer was set.
    timer.startIn(Math.max(ms, Math.min(REPORT_GAP_MS, sentAt + REPORT_GAP_MS - now())));
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

    /** Reports as soon as REPORT_GAP_MS allows. */
    sendSoon(): void {
      if (unreported.slices.length > 0) sendIn(0);
    },

    forget: (): void => void (unreported = nothing()),

    stop: timer.stop,
  };
}

/** The provider was not called: its circuit breaker is open, or half open and another request is its probe. */
export class BreakerOpenError extends Error {
  override readonly name = 'BreakerOpenError';
  readonly retryInMs: number;

  constructor(provider: string, retryInMs: number) {
    super(`The circuit breaker of ${provider} is open`);
    this.retryInMs = retryInMs;
  }
}

interface CircuitDeps {
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

export type Circuit = ReturnType<typeof createCircuit>;

interface Probe {
  holder: string;
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
    adopt,
    /** True if a call would be made at the moment, as far as this worker knows. */
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

export interface CreateBreakersDeps {
  store: Pick<BreakerStore, 'change' | 'readAll'>;
  /** `onMissed`: changes of other workers may have been lost. */
  listen(onChange: (provider: string, breaker: Breaker) => void, onMissed: () => void): Promise<void>;
  workerId: string;
  events: CircuitDeps['events'];
  clock: Clock;
  log: Logger;
  /** A call of Redis is waited for this long, in milliseconds; longer in tests of what workers decide together. */
  callMs?: number;
}

export type Breakers = Awaited<ReturnType<typeof createBreakers>>;

/** All workers honour an open breaker within 1 s, even if the message is lost (docs/spec.md#breaker). */
const READ_MS = 900;
/** Requests may wait for these calls. Without an answer this worker decides alone. */
const CALL_MS = 1_000;

/** The states that all workers share, read and changed in Redis; while it does not answer, this worker is alone. */
function createSharedBreakers({ store, clock, log, callMs = CALL_MS }: CreateBreakersDeps) {
  const versions = new Map<string, number>();
  let offsetMs = 0;
  let isAlone = false;
  const [changes, reads] = [createBriefCalls(callMs), createBriefCalls(callMs)];

  function recordAlone(error: unknown): void {
    if (!isAlone)
      log.warn('The circuit breakers cannot be shared; this worker goes by its own until they can.', { error });
    isAlone = true;
  }

  return {
    recordAlone,
    /** Redis's clock. */
    now: (): number => clock.now() + offsetMs,
    /** Messages have their own connection, so one may be older than what was read since. */
    isNews: (provider: string, { version }: Breaker): boolean => version > (versions.get(provider) ?? 0),
    adopt: (provider: string, { version }: Breaker): unknown => versions.set(provider, version),

    async change(provider: string, next: (current: Breaker, time: number) => Breaker): Promise<Breaker> {
      // If Redis makes the change after this worker has decided alone, the change must not happen twice.
      let isLate = false;
      const once = (current: Breaker, time: number) => (isLate ? current : next(current, time));
      try {
        const { breaker } = await changes.make(() => store.change(provider, once));
        versions.set(provider, breaker.version);
        return breaker;
      } catch (error) {
        isLate = true;
        recordAlone(error);
        throw error;
      }
    },

    /** Undefined: a server that takes no writes can be read; this worker has decided since without it. */
    async read(): Promise<ReadonlyMap<string, Breaker> | undefined> {
      const snapshot = await reads.make(store.readAll);
      offsetMs = snapshot.now - clock.now();
      if (changes.isWaiting()) return undefined;
      if (isAlone) log.info('The circuit breakers are shared again.');
      isAlone = false;
      return snapshot.breakers;
    },
  };
}

export async function createBreakers(deps: CreateBreakersDeps) {
  const { listen, workerId, events, callMs = CALL_MS } = deps;
  const shared = createSharedBreakers(deps);
  const circuits = new Map<string, Circuit>();
  let probes = 0;

  function circuitOf(provider: string): Circuit {
    const known = circuits.get(provider);
    if (known !== undefined) return known;
    const circuit = createCircuit({
      provider,
      classify: classifyFailure,
      now: shared.now,
      newHolder: () => `${workerId}:${(probes += 1)}`,
      events,
      change: (next) => shared.change(provider, next),
    });
    circuits.set(provider, circuit);
    return circuit;
  }

  function adopt(provider: string, breaker: Breaker): void {
    shared.adopt(provider, breaker);
    circuitOf(provider).adopt(breaker);
  }

  async function read(): Promise<void> {
    const breakers = await shared.read();
    if (breakers === undefined) return;
    for (const provider of circuits.keys()) {
      if (!breakers.has(provider)) adopt(provider, NEW_BREAKER);
    }
    for (const [provider, breaker] of breakers) adopt(provider, breaker);
  }

  const listening = listen(
    (provider, breaker) => {
      if (shared.isNews(provider, breaker)) adopt(provider, breaker);
    },
    () => {
      read().catch(shared.recordAlone);
    },
  );
  // One master of a cluster may be away for long: until the breakers are there, this worker goes by its own.
  await Promise.all([inTime(listening, callMs), read()]).catch(shared.recordAlone);
  const reading = repeat(
    async () => {
      await read();
      for (const circuit of circuits.values()) circuit.tick();
    },
    () => READ_MS,
    shared.recordAlone,
  );

  return {
    /**
     * Makes a call that counts; `onText` is to be called when its text begins. Throws BreakerOpenError where the
     * breaker lets no call through, else what the call throws.
     */
    guard: <T>(provider: Provider, call: (onText: () => void) => Promise<T>): Promise<T> =>
      circuitOf(provider.name).guard(provider.breaker, call),
    isPassable: ({ name }: { name: string }): boolean => circuitOf(name).isPassable(),
    /** True if its calls go through without being a probe. */
    isClosed: ({ name }: { name: string }): boolean => circuitOf(name).isClosed(),
    async stop(): Promise<void> {
      for (const circuit of circuits.values()) circuit.stop();
      await reading.stop();
    },
  };
}
