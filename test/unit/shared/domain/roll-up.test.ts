import { expect, it } from '@jest/globals';

import type { SettlementRecord } from '../../../../shared/contracts/settlement.ts';
import { rollUp, rollUpIdOf } from '../../../../shared/domain/roll-up.ts';

const NOON = Date.UTC(2026, 10, 21, 12, 34, 56);

function recordAt(acceptedAt: number, more: Partial<SettlementRecord> = {}): SettlementRecord {
  return {
    requestId: 'req_1',
    tenantId: 'ten_1',
    keyId: 'key_1',
    mode: 'live',
    tier: 'mobius',
    endpoint: 'chat',
    provider: 'p',
    model: 'm',
    promptTokens: 10,
    completionTokens: 20,
    estimated: false,
    costMicro: 30,
    finishReason: 'stop',
    acceptedAt,
    finishedAt: acceptedAt + 1_000,
    ...more,
  };
}

it('puts a request into the minute, hour and day of its acceptance', () => {
  const rows = rollUp([recordAt(NOON)]).filter(({ key }) => key.scope === 'all');
  expect(rows.map(({ key }) => [key.width, new Date(key.startMs).toISOString()])).toEqual([
    ['1m', '2026-11-21T12:34:00.000Z'],
    ['1h', '2026-11-21T12:00:00.000Z'],
    ['1d', '2026-11-21T00:00:00.000Z'],
  ]);
});

it('adds up the requests of one row and counts the estimated ones', () => {
  const records = [recordAt(NOON), recordAt(NOON + 1, { estimated: true, costMicro: 5, promptTokens: 1 })];
  const day = rollUp(records).find(({ key }) => key.width === '1d' && key.scope === 'all');
  expect(day?.counts).toEqual({
    requests: 2,
    promptTokens: 11,
    completionTokens: 40,
    costMicro: 35,
    estimatedRequests: 1,
    spendNano: 0,
  });
});

it('keeps entities out of the rows of scope `all`, and tells them apart in those of scope `entity`', () => {
  const rows = rollUp([recordAt(NOON, { entityId: 'a' }), recordAt(NOON, { entityId: 'b' }), recordAt(NOON)]);
  const days = rows.filter(({ key }) => key.width === '1d');
  expect(days.filter(({ key }) => key.scope === 'all').map(({ counts }) => counts.requests)).toEqual([3]);
  const byEntity = days.filter(({ key }) => key.scope === 'entity');
  expect(byEntity.map(({ key, counts }) => [key.entityId, counts.requests])).toEqual([
    ['a', 1],
    ['b', 1],
    ['', 1],
  ]);
});

it.each([
  ['tenant', { tenantId: 'ten_2' }],
  ['key', { keyId: 'key_2' }],
  ['tier', { tier: 'oloid' }],
  ['mode', { mode: 'test' }],
  ['endpoint', { endpoint: 'chat.stream' }],
  ['provider', { provider: 'q' }],
  ['model', { model: 'n' }],
  ['currency', { spend: { currency: 'usd', nano: 5 } }],
] as const)('has rows of its own for every %s', (_name, more) => {
  const rows = rollUp([recordAt(NOON), recordAt(NOON, more)]);
  expect(rows).toHaveLength(12);
  expect(new Set(rows.map(({ key }) => rollUpIdOf(key))).size).toBe(12);
});
