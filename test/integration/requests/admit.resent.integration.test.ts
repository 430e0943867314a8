import { afterEach, beforeAll, describe, expect, it } from '@jest/globals';

import { createPseudonyms } from '../../../shared/domain/pseudonyms.ts';
import { createAdmission } from '../../../shared/requests/admission.ts';
import type { AdmissionDeps } from '../../../shared/requests/admission.ts';
import { createEnqueuer } from '../../../shared/requests/enqueue.ts';
import { createAccountStore } from '../../../shared/redis/stores/account-store.ts';
import { createQueueOrderStore } from '../../../shared/requests/body-store.ts';
import { createRequestStore } from '../../../shared/requests/delivery-store.ts';
import { systemClock } from '../../../shared/lifecycle/clock.ts';
import { newId } from '../../../shared/lifecycle/ids.ts';
import { openAdmissionLab } from '../../support/admission-lab.ts';
import type { LabKey } from '../../support/admission-lab.ts';
import { openOwnRedis } from '../../support/redis/own-servers.ts';
import { openTcpProxy } from '../../support/tcp-proxy.ts';
import { createRecordingLog } from '../../support/recording-log.ts';
import { openTestRedis } from '../../support/stores.ts';
import { useStarted } from '../../support/use-service.ts';
import { waitUntil } from '../../support/wait-for.ts';

/** The first answer is lost on the way, and the ingress's client sends the admission again by itself. */
describe('an admission that is sent again', () => {
  let key: LabKey;
  let admit: ReturnType<typeof createAdmission>;
  const redis = useStarted('redis', openOwnRedis);
  const proxy = useStarted('proxy', () => openTcpProxy(redis.url));
  const lab = useStarted('lab', () => openAdmissionLab({ url: proxy.url }));
  const direct = useStarted('client', () => openTestRedis('worker', redis.url));
  beforeAll(async () => {
    lab.redis.on('error', () => undefined);
    key = await lab.key();
    const common = { clock: systemClock, log: createRecordingLog() };
    const queueOrder = createQueueOrderStore(lab.redis, lab.keyspace, 600_000);
    const { voidLater } = createEnqueuer({ ...common, queueOrder, store: lab.store, giveUpAfterMs: 10_000 });
    admit = createAdmission({
      ...{ ...common, voidLater, store: lab.store, isFull: () => false },
      pseudonyms: createPseudonyms(Buffer.alloc(32)),
      accountStore: createAccountStore(lab.redis, lab.keyspace),
      // Its book is in Redis, and its tier has the usual rates.
      accounts: {} as unknown as AdmissionDeps['accounts'],
      routing: { current: () => ({ tiers: {}, models: new Map() }) } as unknown as AdmissionDeps['routing'],
    });
    // From then on Redis knows the scripts.
    await ask();
    await lab.store.void(newId('req'), key.principal);
  });
  afterEach(async () => {
    await direct.call('CONFIG', 'SET', 'maxmemory', '0');
  });

  const ask = (requestId = newId('req')) =>
    admit({
      ...{ requestId, principal: key.principal, endpoint: 'chat', stream: false, channel: 'ingress' },
      request: { messages: [{ role: 'user', content: 'Hi' }], maxTokens: 10, jsonMode: false },
      ...{ idempotency: undefined, onDisconnect: 'finish', answerStorage: undefined },
      ...{ isEnqueuedAtOnce: true, retentionMs: 60_000 },
    });

  async function fill(): Promise<void> {
    const used = Number(/^used_memory:(\d+)/m.exec(await direct.info('memory'))?.[1]);
    await direct.call('CONFIG', 'SET', 'maxmemory', String(Math.floor(used * 0.8)));
  }

  async function askTwice(meanwhile: (requestId: string) => Promise<unknown> = () => Promise.resolve()) {
    const requestId = newId('req');
    const lost = proxy.cutNextReply();
    const refused = expect(ask(requestId)).rejects.toMatchObject({ code: 'model_unavailable', retryAfterSeconds: 2 });
    await lost;
    await meanwhile(requestId);
    await fill();
    await refused;
    return requestId;
  }

  const fieldsOf = (requestId: string) => direct.hmget(lab.keys.record(requestId), 'state', 'cancel', 'unbilled');

  it('was accepted when it was first: a stream that is read again begins with the same time', async () => {
    const requestId = newId('req');
    // The client waits 50 ms before it connects again.
    void proxy.cutNextReply(requestId);

    const outcome = await ask(requestId);

    const acceptedAt = Number(await direct.hget(lab.keys.record(requestId), 'acceptedAt'));
    expect(outcome).toMatchObject({ kind: 'admitted', envelope: { acceptedAt } });
    expect(outcome.figures.now).toBeGreaterThan(acceptedAt);
  });

  it('into a Redis that is full by then is taken back where it waits: nothing is held, and nobody runs it', async () => {
    const before = await key.figures();

    const requestId = await askTwice();

    await waitUntil(async () => (await fieldsOf(requestId))[0] === 'void', 'the end of it');
    expect(await key.figures()).toEqual(before);
    expect(await direct.exists(lab.keys.body(requestId), lab.keys.job('interactive', requestId))).toBe(0);
  });

  it('into a Redis that is full by then is stopped where a worker has it, and nobody pays', async () => {
    const requests = createRequestStore(direct, lab.keyspace, { leaseMs: 10_000, disconnectGraceMs: 30_000 });
    const { shard, tenantId } = key.principal;

    const requestId = await askTwice((id) => requests.claim({ shard, requestId: id, tenantId, fence: 1 }));

    await waitUntil(async () => (await fieldsOf(requestId))[2] === '1', 'the word to stop');
    expect(await fieldsOf(requestId)).toEqual(['running', '1', '1']);
  });

  it('into a full Redis leaves nothing behind where it was not let in before', async () => {
    await fill();
    const before = await direct.dbsize();

    await expect(ask()).rejects.toMatchObject({ code: 'model_unavailable', retryAfterSeconds: 2 });

    // What takes it back has been answered by then, too: it was sent behind the refusal.
    await lab.redis.ping();
    expect(await direct.dbsize()).toBe(before);
  });
});
