import { afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';

import { LOST } from '../../../shared/contracts/events.ts';
import type { Terminal } from '../../../shared/contracts/events.ts';
import { createRequestStore } from '../../../shared/requests/delivery-store.ts';
import { createBatchLab } from '../../support/batch-lab.ts';
import type { BatchLab } from '../../support/batch-lab.ts';
import { openLeader } from '../../support/batch-leader.ts';
import { restore, snapshotOf } from '../../support/roll-back.ts';
import type { RunningWorker } from '../../support/service.ts';
import { waitFor } from '../../support/wait-for.ts';
import { useService, useStarted, useTenantPerTest } from '../../support/use-service.ts';

let lab: BatchLab;
const workers: RunningWorker[] = [];
const service = useService({ workers: 0 });
const leader = useStarted('leader', () => openLeader(service));
const tenant = useTenantPerTest(service);
beforeAll(() => {
  lab = createBatchLab(service);
});
beforeEach(() => leader.takeLease());
afterEach(async () => {
  await leader.stop();
  while (workers.length > 0) await workers.pop()?.close();
});

/** As long as a worker's own, or the sweep would end a try before its leader has read the line. */
const LEASE_MS = 5_000;

const leadUntil = <Found>(find: () => Promise<Found | undefined>, what: string) =>
  waitFor(async () => {
    await leader.lead();
    return find();
  }, what);

const REFUSED: Terminal = {
  finishReason: 'error',
  usage: { promptTokens: 0, completionTokens: 0 },
  error: { code: 'invalid_request', message: 'The provider refused it.' },
};

/**
 * A line whose try has failed, with what its leader has written of that to MongoDB. Redis comes back without the end of that
 * try, and its worker, which would say it again, has died.
 */
async function loseFailedTry(terminal: Terminal): Promise<string> {
  const { redis, keyspace } = service;
  const { record, tag } = keyspace.shard(0);
  const { tenantId } = tenant;
  const worker = createRequestStore(redis, keyspace, { leaseMs: LEASE_MS, disconnectGraceMs: 60_000 });
  const batchId = await lab.submit(tenant, ['Say it once']);
  const lineOf = async () => (await lab.lines(batchId))[0];
  const lost = (await lineOf())?.requestId ?? '';
  await leadUntil(async () => (await redis.hget(record(lost), 'state')) ?? undefined, 'the line to be sent');
  await worker.claim({ shard: 0, requestId: lost, tenantId, fence: 1 });
  const before = await snapshotOf(redis, tag);
  const ref = { shard: 0, requestId: lost, tenantId, keyId: tenant.keyId, queue: 'batch', fence: 1 } as const;
  const ending = { status: 'failed', deltas: [], terminal, costMicro: 0, retentionMs: 60_000 } as const;
  expect(await worker.finish(ref, 0, ending)).toBe(true);
  await leadUntil(async () => {
    const line = await lineOf();
    return line?.retry !== undefined || line?.state === 'failed' || undefined;
  }, 'that end to be written');

  await restore(redis, tag, before);
  expect(await redis.hget(record(lost), 'state')).toBe('running');
  return batchId;
}

async function startWorker(): Promise<void> {
  workers.push(await service.startWorker());
}

async function expectOneCharge(batchId: string): Promise<void> {
  const charged = await lab.chargedAtRest(tenant);
  const [line] = await lab.lines(batchId);
  expect(line?.state).toBe('completed');
  expect(charged).toEqual([line?.requestId]);
}

describe('a line that is tried again, where Redis has lost the end of the try before and its worker has died', () => {
  it('is charged once by a leader that goes on', async () => {
    const batchId = await loseFailedTry(LOST);
    await leader.replay();
    await startWorker();

    const isOver = async () => ((await lab.row(batchId)).status === 'completed' ? true : undefined);
    await leadUntil(isOver, 'the batch to end');

    await expectOneCharge(batchId);
  });

  it('is charged once by the next leader, as the one before has died with Redis', async () => {
    const batchId = await loseFailedTry(LOST);
    await leader.stop();
    await startWorker();

    await lab.until(batchId, 'to end', ({ status }) => status === 'completed');

    await expectOneCharge(batchId);
  });
});

describe('a line that has failed for good, where Redis has lost that and its worker has died', () => {
  it('does not run again and is not charged', async () => {
    const batchId = await loseFailedTry(REFUSED);
    await leader.replay();
    await startWorker();

    expect(await lab.chargedAtRest(tenant)).toEqual([]);
    expect((await lab.lines(batchId)).map(({ state }) => state)).toEqual(['failed']);
  });
});
