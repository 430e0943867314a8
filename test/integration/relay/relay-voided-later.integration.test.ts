import { describe, expect, it } from '@jest/globals';

import { createEnqueuer } from '../../../shared/requests/enqueue.ts';
import { LOST } from '../../../shared/contracts/events.ts';
import { createQueueOrderStore } from '../../../shared/requests/body-store.ts';
import type { QueueOrderStore } from '../../../shared/requests/body-store.ts';
import { createRecordStore } from '../../../shared/requests/record-store.ts';
import { createRequestStore } from '../../../shared/requests/delivery-store.ts';
import { systemClock } from '../../../shared/lifecycle/clock.ts';
import { newId } from '../../../shared/lifecycle/ids.ts';
import { waitFor, waitUntil } from '../../support/chat.ts';
import { createRecordingLog } from '../../support/recording-log.ts';
import { openRelayLab } from '../../support/relay-lab.ts';
import type { AdmissionStore } from '../../../shared/requests/admission-store.ts';
import { LEASE_MS, needs, REQUEST_TIMEOUT_MS, RETENTION_MS, SHARD } from '../../support/request-lab.ts';
import type { AdmitOptions } from '../../support/request-lab.ts';
import { useStarted } from '../../support/use-service.ts';

const relay = useStarted('relay', () => openRelayLab({ polls: false }));

/** Admitted without its body, and joined by a second call, which may have been promised that it ends. */
async function joinedBy(ways: AdmitOptions = {}) {
  const { lab, hub } = relay;
  const request = await lab.admit({ withoutBody: true, ...ways });
  const records = createRecordStore(lab.redis, lab.keyspace, { retentionMs: RETENTION_MS });
  await records.attach(request.principal, request.requestId, hub.channelOf(SHARD));
  return request;
}

it.each([
  ['at once that the first call has taken it back', LOST],
  ['within seconds of a tombstone without an end, as a deletion leaves it', undefined],
])('a call that has joined a request hears %s', async (_what, terminal) => {
  const { requestId, principal } = await joinedBy();
  const heard = relay.read(requestId, { existing: true });

  expect(await relay.lab.admissions.void(requestId, principal, terminal)).toBe('accepted');

  await waitUntil(() => heard.entries.at(-1)?.terminal !== undefined, 'the end');
  expect(heard.entries.at(-1)?.terminal).toEqual(LOST);
  heard.reader.close();
});

/** A line that takes a request; a worker has it before the answer, which is lost. */
function unansweredLine(request: Awaited<ReturnType<typeof relay.lab.admit>>): Pick<QueueOrderStore, 'enqueue'> {
  const { lab } = relay;
  const queueOrder = createQueueOrderStore(lab.redis, lab.keyspace, REQUEST_TIMEOUT_MS);
  return {
    async enqueue(...call) {
      await queueOrder.enqueue(...call);
      await lab.run(request, 1);
      throw new Error('Command timed out');
    },
  };
}

describe('a request that another call has joined', () => {
  const named = () => ({ idempotency: { name: newId('req'), fingerprint: 'f' } });
  const tried = () => ({ attempt: { name: newId('req'), fingerprint: 'f', isRetry: false } });

  /** The first call to put it into line fails before Redis hears of it. */
  function enqueuerOf(store: Pick<AdmissionStore, 'voidPermanently' | 'voidRefused'>) {
    const { lab } = relay;
    const queueOrder = createQueueOrderStore(lab.redis, lab.keyspace, REQUEST_TIMEOUT_MS);
    let calls = 0;
    return createEnqueuer({
      queueOrder: {
        enqueue: (...call) =>
          ++calls === 1 ? Promise.reject(new Error('Connection is closed')) : queueOrder.enqueue(...call),
      },
      ...{ store, clock: systemClock, log: createRecordingLog(), giveUpAfterMs: 5_000, tellWithinMs: 500 },
    });
  }

  const stateOf = ({ requestId }: { requestId: string }) =>
    relay.lab.redis.hget(relay.lab.keys.record(requestId), 'state');
  const isInLine = async ({ requestId }: { requestId: string }) =>
    (await relay.lab.redis.exists(relay.lab.keys.body(requestId))) === 1 ? true : undefined;

  it.each([
    ['under its Idempotency-Key', named()],
    ['as a retry of the same call', tried()],
  ])('is put into line, and taken from nobody, where the first try got no answer: %s', async (_name, ways) => {
    const request = await joinedBy(ways);
    const { enqueue } = enqueuerOf(relay.lab.admissions);

    await enqueue(request.envelope, request.principal);

    expect([await stateOf(request), await isInLine(request)]).toEqual(['accepted', true]);
  });

  it('goes on for the other where the first caller was told 503 meanwhile', async () => {
    const request = await joinedBy(named());
    const { enqueue } = enqueuerOf({ ...relay.lab.admissions, voidPermanently: () => new Promise(() => undefined) });

    await expect(enqueue(request.envelope, request.principal)).rejects.toMatchObject({ code: 'model_unavailable' });

    await waitFor(() => isInLine(request), 'its place in line');
    expect(await stateOf(request)).toBe('accepted');
  });

  it('is not stopped while it runs, for a caller who was told 503', async () => {
    const request = await joinedBy(tried());
    await relay.lab.redis.set(relay.lab.keys.body(request.requestId), JSON.stringify(request.envelope));
    await relay.lab.run(request, 1);

    expect(await relay.lab.admissions.voidRefused(request.requestId, request.principal, LOST)).toBe('running');

    expect(await relay.lab.requests.renew(request.ref(1), needs(0))).toMatchObject({ outcome: 'ok' });
  });
});

describe('a request of which nobody knows whether it is in line', () => {
  it('runs on where a worker has it already: its caller is not told otherwise', async () => {
    const { lab } = relay;
    const request = await lab.admit({ withoutBody: true });
    const { enqueue } = createEnqueuer({
      queueOrder: unansweredLine(request),
      store: lab.admissions,
      clock: systemClock,
      log: createRecordingLog(),
      giveUpAfterMs: 1_000,
    });

    await enqueue(request.envelope, request.principal);

    expect(await lab.requests.renew(request.ref(1), needs(0))).toMatchObject({ outcome: 'ok' });
  });
});

describe('a request whose caller was told 503 before Redis said whether it is in line', () => {
  it('stops where a worker has it, and nobody pays', async () => {
    const { lab } = relay;
    const request = await lab.admit({ withoutBody: true });
    const { enqueue } = createEnqueuer({
      queueOrder: unansweredLine(request),
      store: { voidPermanently: () => new Promise(() => undefined), voidRefused: lab.admissions.voidRefused },
      clock: systemClock,
      log: createRecordingLog(),
      tellWithinMs: 50,
      giveUpAfterMs: 5_000,
    });

    await expect(enqueue(request.envelope, request.principal)).rejects.toMatchObject({ code: 'model_unavailable' });

    const marks = () => lab.redis.hmget(lab.keys.record(request.requestId), 'cancel', 'unbilled');
    await waitUntil(async () => (await marks()).every((mark) => mark === '1'), 'the word to stop');
  });
});

describe('an ingress that ends', () => {
  it('waits until Redis has heard what it has answered 503 for', async () => {
    const { lab } = relay;
    const request = await lab.admit();
    let tries = 0;
    const enqueuer = createEnqueuer({
      queueOrder: unansweredLine(request),
      store: {
        voidPermanently: lab.admissions.voidPermanently,
        voidRefused: (...call) =>
          ++tries < 3 ? Promise.reject(new Error('Connection is closed')) : lab.admissions.voidRefused(...call),
      },
      ...{ clock: systemClock, log: createRecordingLog(), giveUpAfterMs: 5_000 },
    });
    enqueuer.voidLater(request.requestId, request.principal);

    await enqueuer.idle();

    expect(await lab.redis.hget(lab.keys.record(request.requestId), 'state')).toBe('void');
  });
});

describe('an outage of Redis that is longer than readers are missed for', () => {
  it('ends nothing, as long as their ingress may just be coming back', async () => {
    const { lab } = relay;
    let isBack = true;
    const requests = createRequestStore(lab.redis, lab.keyspace, {
      leaseMs: LEASE_MS,
      disconnectGraceMs: 30_000,
      hasReconnectedRecently: () => isBack,
    });
    const request = await lab.admit();
    await lab.run(request, 1);
    const fields = await lab.redis.hkeys(lab.keys.record(request.requestId));
    for (const field of fields.filter((name) => name.startsWith('reader:')))
      await lab.redis.hset(lab.keys.record(request.requestId), field, Date.now() - 60_000);

    expect(await requests.renew(request.ref(1), needs(0))).toMatchObject({ outcome: 'ok' });
    isBack = false;
    expect(await requests.renew(request.ref(1), needs(0))).toMatchObject({ outcome: 'cancelled' });
  });

  it('has the readers say that they are there as soon as the subscriber is back', async () => {
    const { lab, hub } = relay;
    const { requestId } = await relay.start();
    const heard = relay.read(requestId);
    const field = `reader:${hub.channelOf(SHARD)}`;
    await lab.redis.hset(lab.keys.record(requestId), field, 1);

    await relay.killSubscriber();

    await waitUntil(
      async () => Number(await lab.redis.hget(lab.keys.record(requestId), field)) > Date.now(),
      'the renewal',
      2_500,
    );
    heard.reader.close();
  });
});
