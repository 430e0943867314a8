import { beforeEach, describe, expect, it } from '@jest/globals';

import { totalsOf, DEFAULT_BREAKER, NEW_BREAKER, afterReport } from '../../../../shared/domain/breaker.ts';
import type { Breaker } from '../../../../shared/domain/breaker.ts';
import { createEventBus } from '../../../../shared/lifecycle/event-bus.ts';
import type { WorkerEvents } from '../../../../workers/pipeline/worker-events.ts';
import { BreakerOpenError, createCircuit } from '../../../../workers/pipeline/breakers.ts';
import type { Circuit } from '../../../../workers/pipeline/breakers.ts';
import { classifyFailure, ProviderTimeout } from '../../../../workers/pipeline/run-provider-call.ts';
import type { FailureClass } from '../../../../workers/pipeline/run-provider-call.ts';
import { Stopped } from '../../../../workers/pipeline/stage.ts';
import { ProviderError, faultOfStatus } from '../../../../workers/providers/provider.ts';
import { waitFor } from '../../../support/wait-for.ts';

/** The fleet's state in a variable, and a clock that stands until a test moves it. */
let fleet: Breaker;
let isAway: boolean;
let changes: number;
let time: number;
let states: string[];
let circuit: Circuit;
beforeEach(() => {
  fleet = NEW_BREAKER;
  isAway = false;
  changes = 0;
  time = 1_000_000_000;
  states = [];
  circuit = openCircuit();
});

/** An error carries what it says about the provider. */
class Classified extends Error {
  readonly failureClass: FailureClass;

  constructor(failureClass: FailureClass) {
    super(failureClass.kind);
    this.failureClass = failureClass;
  }
}

const FAILED = new Classified({ kind: 'failed', reason: 'timeout' });
const REFUSED = new Classified({ kind: 'refused', reason: 'forbidden' });

function openCircuit(): Circuit {
  const events = createEventBus<WorkerEvents>(() => undefined);
  events.on('breaker.seen', (_provider, state) => {
    states.push(state);
  });
  return createCircuit({
    provider: 'p',
    classify: (error) => (error instanceof Classified ? error.failureClass : { kind: 'void' }),
    newHolder: () => `holder-${time}`,
    now: () => time,
    events,
    change(next) {
      changes += 1;
      if (isAway) return Promise.reject(new Error('Redis is away'));
      const after = next(fleet, time);
      if (after !== fleet) fleet = { ...after, version: fleet.version + 1 };
      return Promise.resolve(fleet);
    },
  });
}

const succeed = () => circuit.guard(undefined, () => Promise.resolve('text'));
const fail = (error: Error) => circuit.guard(undefined, () => Promise.reject(error)).catch(() => undefined);
/** Lets the promises of a report run. */
const settle = () =>
  new Promise((resolve) => {
    setImmediate(resolve);
  });

async function refuse(): Promise<void> {
  await fail(REFUSED);
  await settle();
}

describe('a closed circuit', () => {
  it('tells of them when something has failed elsewhere', async () => {
    for (let number = 0; number < 7; number += 1) await succeed();
    fleet = afterReport(fleet, { slices: [{ at: time, ok: 0, failed: { timeout: 1 } }] }, DEFAULT_BREAKER, time);

    const before = fleet;

    circuit.adopt(fleet);
    await waitFor(() => (fleet === before ? undefined : true), 'the report');

    expect(totalsOf(fleet.slices, 0)).toMatchObject({ attempts: 8, failures: 1 });
  });

  it('tells of failures soon after the clock was put back', async () => {
    await fail(FAILED);
    await waitFor(() => changes > 0 || undefined, 'the first report');
    const before = changes;
    time -= 3_600_000;

    await fail(FAILED);

    await waitFor(() => changes > before || undefined, 'the next report');
  });

  it('a closed circuit says nothing of calls that say nothing', async () => {
    await fail(new Error('The caller has left'));
    await settle();

    expect(changes).toBe(0);
  });
});

describe('an open circuit', () => {
  beforeEach(refuse);

  it('takes no part in Redis’s work before the pause is over', async () => {
    changes = 0;

    await expect(succeed()).rejects.toThrow(BreakerOpenError);

    expect(changes).toBe(0);
  });
});

describe('a probe', () => {
  let end: () => void;
  let running: Promise<unknown>;
  beforeEach(async () => {
    await refuse();
    time += 10_000;
    running = circuit.guard(undefined, (onText) => {
      onText();
      return new Promise<void>((resolve) => {
        end = resolve;
      });
    });
    await settle();
    expect(fleet.state).toBe('half_open');
  });

  it('that has sent text for five seconds has shown enough, though its answer goes on', async () => {
    time += 4_999;
    circuit.tick();
    await settle();
    expect(fleet.state).toBe('half_open');

    time += 1;
    circuit.tick();
    await settle();

    expect(fleet.state).toBe('closed');
    end();
    await running;
  });

  it('a probe is renewed while it runs', async () => {
    const until = fleet.probe?.until ?? 0;
    time += 1_000;

    circuit.tick();
    await settle();

    expect(fleet.probe?.until).toBe(until + 1_000);
    end();
    await running;
  });
});

const answered = (status: number) => new ProviderError(faultOfStatus(status), `status ${status}`, { status });

it.each([408, 409, 429, 500, 502, 503, 529])('counts status %d against the provider', (status) => {
  expect(classifyFailure(answered(status))).toEqual({ kind: 'failed', reason: `status_${status}` });
});

it.each([
  [401, 'authentication'],
  [402, 'payment_required'],
  [403, 'forbidden'],
])('takes status %d as the provider’s refusal of all we send', (status, reason) => {
  expect(classifyFailure(answered(status))).toEqual({ kind: 'refused', reason });
});

it.each([400, 413, 422])('never counts the caller’s own %d', (status) => {
  expect(classifyFailure(answered(status))).toEqual({ kind: 'void' });
});

it('takes a 403 of a content filter as what it is: a word about one prompt, not about our account', () => {
  expect(classifyFailure(new ProviderError('filtered', 'flagged', { status: 403 }))).toEqual({ kind: 'void' });
});

it('counts a 403 of a firewall like any failure: it may speak of one prompt', () => {
  const blocked = new ProviderError('blocked', 'blocked', { status: 403 });

  expect(classifyFailure(blocked)).toEqual({ kind: 'failed', reason: 'status_403' });
});

it('does not count a model that the provider does not have: its other models may serve', () => {
  expect(classifyFailure(answered(404))).toEqual({ kind: 'void' });
});

it('counts broken connections, broken answers and time limits', () => {
  expect(classifyFailure(new ProviderError('transient', 'reset'))).toEqual({
    kind: 'failed',
    reason: 'connection_or_format',
  });
  expect(classifyFailure(new ProviderTimeout('first token', 5))).toEqual({ kind: 'failed', reason: 'timeout' });
});

it.each([new Stopped('cancelled'), new Stopped('deadline'), new Error('a bug')])(
  'does not count what the provider has no part in (%s)',
  (error) => {
    expect(classifyFailure(error)).toEqual({ kind: 'void' });
  },
);
