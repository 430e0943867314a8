import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';

import { systemClock } from '../../../../shared/lifecycle/clock.ts';
import type { BatchRow } from '../../../../shared/mongo/batches/batch-repository.ts';
import { createFillQueue } from '../../../../workers/batches/fill-queue.ts';
import { advance, isAtRest, openBatch } from '../../../../workers/batches/open-batch.ts';
import type { OpenBatch } from '../../../../workers/batches/open-batch.ts';
import { createReadLines } from '../../../../workers/batches/send-slice.ts';
import type { LineSendResult } from '../../../../workers/batches/send-line.ts';
import { principalOf } from '../../../support/request-lab.ts';

const ROW: BatchRow = {
  ...{ _id: 'batch_1', tenantId: 'ten_1', keyId: 'key_1', shard: 3, mode: 'live', status: 'in_progress' },
  ...{ waitingFor: null, total: 3, completed: 0, failed: 0, createdAt: 0, expiresAt: 1, removeAt: new Date(0) },
};
/** A batch of which all lines have been read, and none sent. */
function readBatch(count: number, row: Partial<BatchRow> = {}): OpenBatch {
  const batch = openBatch({ ...ROW, ...row }, { completed: 0, failed: 0 });
  advance(batch, { kind: 'waits', lines: Array.from({ length: count }, (_, index) => ({ index })) });
  advance(batch, { kind: 'page', cursor: count - 1, isRead: true });
  return batch;
}

/** A leader of whose lines none has been sent before, and none is deleted or held. */
const ALONE = {
  queue: { states: () => Promise.resolve([]) },
  countWaiting: () => Promise.resolve(0),
  principals: { findByKey: () => Promise.resolve(principalOf({})) },
  lines: { more: () => Promise.resolve() },
  isDeletedSince: () => Promise.resolve(false),
  nameOf: (_space: unknown, entityId: string) => Promise.resolve(entityId),
  watch: { isDown: () => false, takeProbe: () => false },
  clock: systemClock,
};
const WAIT: LineSendResult = { kind: 'wait', waitFor: 'tpm', ms: 2_000 };

beforeEach(() => {
  jest.useFakeTimers();
});
afterEach(() => {
  jest.useRealTimers();
});

it('ends no line that was refused where another process may lead: that one may have sent it', async () => {
  const batch = readBatch(1);
  const ended: number[] = [];
  const lead = { isLost: false };
  const fillQueue = createFillQueue({
    ...ALONE,
    work: {
      end: (_tenant, _batch, ends) => Promise.resolve(ended.push(...ends.map(({ index }) => index))),
      toSend: () => Promise.resolve([{ index: 0, requestId: 'req_0', requestJson: '', customId: null }]),
    },
    sendLine: () => {
      lead.isLost = true;
      return Promise.resolve({ kind: 'refused', error: { code: 'budget_exceeded', message: 'No budget.' } });
    },
  });

  const filled = fillQueue(3, [batch], () => (lead.isLost ? Promise.reject(new Error('lost')) : Promise.resolve()));

  await expect(filled).rejects.toThrow('lost');
  expect(ended).toEqual([]);
});

it('reads few of the large requests that are refused, and rests for the time that they take of others', async () => {
  const batch = readBatch(20);
  const read: number[] = [];
  const fillQueue = createFillQueue({
    ...ALONE,
    work: {
      end: () => Promise.resolve(0),
      toSend: (_tenant, _batch, indexes) => {
        read.push(indexes.length);
        const requestJson = 'x'.repeat(1_600_000);
        return Promise.resolve(
          indexes.map((index) => ({ index, requestId: `req_${index}`, requestJson, customId: null })),
        );
      },
    },
    sendLine: () => Promise.resolve({ kind: 'wait', waitFor: 'credits', ms: 2_000 }),
  });

  for (let seconds = 0; seconds <= 60; seconds += 1) {
    await fillQueue(3, [batch], () => Promise.resolve());
    jest.advanceTimersByTime(1_000);
  }

  expect(read.slice(0, 3)).toEqual([8, 1, 1]);
  // Every two seconds, as often as a small one, but for the first time.
  expect(read.length).toBeGreaterThan(25);
});

describe('two batches of a tenant', () => {
  /** Lines of 125,000 characters: a refusal of eight is worth a rest of half a second. */
  function openTwo(lines: number, send: (id: string) => LineSendResult) {
    const [older, younger] = [readBatch(lines, { _id: 'older' }), readBatch(lines, { _id: 'younger' })];
    const requestJson = 'x'.repeat(125_000);
    const fillQueue = createFillQueue({
      ...ALONE,
      work: {
        end: () => Promise.resolve(0),
        toSend: (_tenant, id, indexes) =>
          Promise.resolve(
            indexes.map((index) => ({ index, requestId: `${id}_${index}`, requestJson, customId: null })),
          ),
      },
      sendLine: ({ requestId }) => Promise.resolve(send(requestId.split('_')[0] ?? '')),
    });
    return { older, younger, round: () => fillQueue(3, [older, younger], () => Promise.resolve()) };
  }

  const SENT: LineSendResult = { kind: 'sent', promptTokens: 1 };

  it('serves one that may send beside one that is refused again and again', async () => {
    const { older, younger, round } = openTwo(20, (id) => (id === 'younger' ? SENT : WAIT));

    for (let rounds = 0; rounds < 30; rounds += 1) {
      // Lines of it end now and then, which lets it try soon.
      advance(older, { kind: 'moved', until: 0 });
      await round();
      jest.advanceTimersByTime(100);
    }

    expect(younger.lines.inFlight.size).toBe(20);
  });

  it('asks again for one that was refused once, however much the other has to send', async () => {
    let isRefused = true;
    const { older, younger, round } = openTwo(10_000, (id) => (id === 'older' && isRefused ? WAIT : SENT));
    await round();
    expect([older.lines.inFlight.size, younger.lines.inFlight.size]).toEqual([0, 0]);
    isRefused = false;

    for (let rounds = 0; rounds < 25; rounds += 1) {
      jest.advanceTimersByTime(100);
      await round();
    }

    expect(older.lines.inFlight.size).toBeGreaterThan(0);
    expect(younger.lines.inFlight.size).toBeGreaterThan(0);
  });
});

describe('a batch of two tiers', () => {
  const OLOID = 1_200;
  const LINES = OLOID + 200;
  const tierOf = (index: number) => (index < OLOID ? 'oloid' : 'mobius');

  /** Its first lines are of `oloid`. Lines of a tier that is down are held. */
  function openMixed() {
    const batch = openBatch({ ...ROW, total: LINES }, { completed: 0, failed: 0 });
    const down = new Set<string>(['oloid']);
    const probes: number[] = [];
    const lineOf = (index: number) => ({ index, requestId: `req_${index}` });
    const isDown = (tier: string) => down.has(tier);
    const fillQueue = createFillQueue({
      ...ALONE,
      work: {
        end: () => Promise.resolve(0),
        toSend: (_tenant, _batch, indexes) =>
          Promise.resolve(indexes.map((index) => ({ ...lineOf(index), customId: null, requestJson: '{}' }))),
      },
      lines: createReadLines({
        work: {
          waiting: (_tenant, _batch, after, limit) =>
            Promise.resolve(
              Array.from({ length: LINES }, (_, index) => lineOf(index)).slice(after + 1, after + 1 + limit),
            ),
          waitingAt: () => Promise.resolve(undefined),
          renumber: () => Promise.resolve(true),
        },
        queue: { states: (_shard, ids) => Promise.resolve(ids.map(() => undefined)) },
        failedTries: { end: () => Promise.resolve() },
        clock: systemClock,
      }),
      sendLine: ({ index, isProbe }) => {
        const tier = tierOf(index);
        if (isProbe === true) probes.push(index);
        return Promise.resolve(isProbe !== true && isDown(tier) ? { kind: 'held', tier } : { kind: 'sent' });
      },
      watch: { isDown, takeProbe: (tier) => isDown(tier) && probes.length === 0 && batch.lines.inFlight.size > 0 },
    });
    const rounds = async (count: number) => {
      for (let round = 0; round < count; round += 1) {
        await fillQueue(3, [batch], () => Promise.resolve());
        jest.advanceTimersByTime(100);
      }
      return [...batch.lines.inFlight.keys()].sort((one, other) => one - other);
    };
    return { batch, down, probes, rounds };
  }

  it('sends all lines of the tier that answers, however many of the other wait', async () => {
    const { batch, probes, rounds } = openMixed();

    const sent = await rounds(20);

    expect(sent.filter((index) => tierOf(index) === 'mobius')).toHaveLength(LINES - OLOID);
    expect(probes).toHaveLength(1);
    expect(sent.filter((index) => tierOf(index) === 'oloid')).toEqual(probes);
    expect(isAtRest({ ...batch, lines: { ...batch.lines, inFlight: new Map() } })).toBe(false);
  });

  it('sends those that waited when their tier answers again', async () => {
    const { batch, down, rounds } = openMixed();
    await rounds(20);
    down.clear();

    const sent = await rounds(20);

    expect(sent).toHaveLength(LINES);
    expect(isAtRest({ ...batch, lines: { ...batch.lines, inFlight: new Map() } })).toBe(true);
  });
});
