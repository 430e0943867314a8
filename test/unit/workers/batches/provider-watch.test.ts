import { expect, it } from '@jest/globals';

import type { RequestTrace } from '../../../../shared/contracts/events.ts';
import type { RoutingTable } from '../../../../shared/domain/routing.ts';
import { createProviderWatch } from '../../../../workers/batches/provider-watch.ts';
import { createRecordingLog } from '../../../support/recording-log.ts';

type State = 'closed' | 'open' | 'due';

function open(states: Record<string, State>) {
  const targets = Object.keys(states).map((provider) => ({
    provider,
    model: 'm',
    weight: 1,
    priority: 1,
    contextWindow: 1_000,
  }));
  const table: RoutingTable = {
    tiers: { mobius: { tier: 'mobius', version: 1, rates: { promptMicro: 1, completionMicro: 1 }, targets } },
    models: new Map(),
    providers: new Map(),
    unreadable: new Map(),
  };
  const clock = { time: 1_000_000, now: () => clock.time };
  const watch = createProviderWatch({
    routing: { current: () => table },
    breakers: { isClosed: ({ name }) => states[name] === 'closed', isPassable: ({ name }) => states[name] !== 'open' },
    now: clock.now,
    log: createRecordingLog(),
  });
  return { watch, clock, states };
}

const called = (outcome: string, startedAt = 0): RequestTrace => ({
  attempts: [{ provider: 'one', model: 'm', startedAt, endedAt: startedAt, outcome }],
});

it('takes a tier for down while every breaker behind it is open', () => {
  const { watch, states } = open({ one: 'open', two: 'closed' });
  expect(watch.isDown('mobius')).toBe(false);
  states['two'] = 'due';
  expect(watch.isDown('mobius')).toBe(true);
});

it('takes a tier for down that has no provider', () => {
  expect(open({}).watch.isDown('mobius')).toBe(true);
});

it('takes a tier for down after 20 passing failures in a row, until a call is answered', () => {
  const { watch } = open({ one: 'closed' });
  for (let count = 0; count < 19; count += 1) watch.recordEnd('mobius', called('status_503'), true);
  watch.recordEnd('mobius', called('ok'), false);
  for (let count = 0; count < 19; count += 1) watch.recordEnd('mobius', called('status_503'), true);
  expect(watch.isDown('mobius')).toBe(false);
  watch.recordEnd('mobius', called('status_503'), true);
  expect(watch.isDown('mobius')).toBe(true);
  expect(watch.isDown('oloid')).toBe(true);
  watch.recordEnd('mobius', called('ok'), false);
  expect(watch.isDown('mobius')).toBe(false);
});

it('counts no failure that is the request’s own', () => {
  const { watch } = open({ one: 'closed' });
  for (let count = 0; count < 100; count += 1) watch.recordEnd('mobius', called('status_400'), false);
  expect(watch.isDown('mobius')).toBe(false);
});

it('lets one line a second find out, and none while an open breaker would answer', () => {
  const { watch, clock, states } = open({ one: 'open' });
  expect(watch.takeProbe('mobius')).toBe(false);
  states['one'] = 'due';
  expect([watch.takeProbe('mobius'), watch.takeProbe('mobius')]).toEqual([true, false]);
  clock.time += 1_000;
  expect(watch.takeProbe('mobius')).toBe(true);
});

it('knows whether a call was answered that began after a time', () => {
  const { watch } = open({ one: 'closed' });
  watch.recordEnd('mobius', called('ok', 500), false);
  watch.recordEnd('mobius', called('ok', 300), false);
  expect([watch.hasAnsweredSince('mobius', 500), watch.hasAnsweredSince('mobius', 501)]).toEqual([true, false]);
  expect(watch.hasAnsweredSince('oloid', 1)).toBe(false);
});
