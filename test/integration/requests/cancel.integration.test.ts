import { afterAll, beforeAll, expect, it, jest } from '@jest/globals';

import { createRecordStore } from '../../../shared/requests/record-store.ts';
import { subscribe } from '../../../shared/redis/connection.ts';
import { createLease, createOpenLeases } from '../../../workers/pipeline/claim.ts';
import type { OpenLeases } from '../../../workers/pipeline/claim.ts';
import { Stopped } from '../../../workers/pipeline/stage.ts';
import type { Lease } from '../../../workers/pipeline/stage.ts';
import { waitUntil } from '../../support/chat.ts';
import { createRecordingLog } from '../../support/recording-log.ts';
import { RETENTION_MS, openRequestLab } from '../../support/request-lab.ts';
import type { LabRequest } from '../../support/request-lab.ts';
import { openTestRedis } from '../../support/stores.ts';
import { useStarted } from '../../support/use-service.ts';

const lab = useStarted('lab', openRequestLab);
const subscriber = useStarted('subscriber', () => openTestRedis('subscriber'));
let leases: OpenLeases;
beforeAll(async () => {
  // Leases are not renewed by themselves: what stops here was told to.
  const clocks = ['Date', 'hrtime', 'nextTick', 'performance', 'queueMicrotask', 'setImmediate', 'setTimeout'] as const;
  jest.useFakeTimers({ doNotFake: [...clocks, 'clearImmediate', 'clearTimeout'] });
  leases = createOpenLeases((options) => createLease(createRecordingLog(), options));
  await subscribe(subscriber, lab.keys.cancelled, (requestId) => void leases.onCancelled(requestId));
});
afterAll(() => {
  jest.useRealTimers();
});

function open(request: LabRequest, fence = 1): Lease {
  return leases.open({
    delivery: { ...request.ref(fence), renew: (needed) => lab.requests.renew(request.ref(fence), needed) },
    rates: { promptMicro: 1, completionMicro: 1 },
    maxTokens: 100,
    remainingMs: 60_000,
    held: { micro: 0, tokens: Infinity },
  });
}

async function run(): Promise<{ request: LabRequest; lease: Lease }> {
  const request = await lab.admit();
  await lab.run(request, 1);
  return { request, lease: open(request) };
}

it('stops a running request without waiting for its next renewal, and no other', async () => {
  const [cancelled, other] = [await run(), await run()];
  const stopped = new Promise((resolve) => {
    cancelled.lease.signal.addEventListener('abort', () => {
      resolve(cancelled.lease.signal.reason);
    });
  });

  const records = createRecordStore(lab.redis, lab.keyspace, { retentionMs: RETENTION_MS });
  await records.cancel(cancelled.request.principal, cancelled.request.requestId);

  expect(await stopped).toMatchObject({ name: 'Stopped', reason: 'cancelled' });
  expect(other.lease.signal.aborted).toBe(false);
  for (const { lease } of [cancelled, other]) lease.release();
});

/** A request that was cancelled between its claim and its start. */
async function cancelledBeforeStart(): Promise<LabRequest> {
  const request = await lab.admit();
  await lab.run(request, 1);
  const heard = new Promise((resolve) => {
    subscriber.once('message', (_channel, requestId) => {
      resolve(requestId);
    });
  });
  const records = createRecordStore(lab.redis, lab.keyspace, { retentionMs: RETENTION_MS });
  await records.cancel(request.principal, request.requestId);
  expect(await heard).toBe(request.requestId);
  return request;
}

it('stops a request as it starts that was cancelled after its job was taken', async () => {
  const request = await cancelledBeforeStart();

  const lease = open(request);

  await waitUntil(() => lease.signal.aborted, 'the stop');
  expect(lease.signal.reason).toEqual(new Stopped('cancelled'));
  lease.release();
});

it('does not stop a run that begins later, as an administrator asks for it', async () => {
  const request = await cancelledBeforeStart();
  // As reopen.lua and the next admission leave it.
  await lab.redis.hdel(lab.keys.record(request.requestId), 'cancel');

  const lease = open(request);
  await lease.check();

  expect(lease.signal.aborted).toBe(false);
  lease.release();
});

it('asks nothing of a lease that was released, and keeps that of a later delivery', async () => {
  const { request, lease } = await run();
  const later = open(request, 2);
  lease.release();

  await leases.check(request.requestId);

  expect(lease.signal.aborted).toBe(false);
  // Nobody has claimed the second delivery, so Redis refuses it: it was asked.
  expect(later.signal.reason).toEqual(new Stopped('superseded'));
  later.release();
  await leases.check(request.requestId);
});

it('goes on without text when it is asked whether it is still wanted, although its prompt is more than it holds', async () => {
  const { request, lease } = await run();
  await lab.redis.hset(lab.keys.account(request.ref(1).tenantId), 'ledgerBalance', 0);
  lease.need({ promptTokens: 1_000_000, completionTokens: 0 });
  await leases.check(request.requestId);
  expect(lease.signal.aborted).toBe(false);
  lease.release();
});
