import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';

import { createPseudonyms } from '../../../shared/domain/pseudonyms.ts';
import { createAdmission } from '../../../shared/requests/admission.ts';
import type { AdmissionDeps } from '../../../shared/requests/admission.ts';
import { createAccountStore } from '../../../shared/redis/stores/account-store.ts';
import { createRecordStore } from '../../../shared/requests/record-store.ts';
import { createRequestStore } from '../../../shared/requests/delivery-store.ts';
import { systemClock } from '../../../shared/lifecycle/clock.ts';
import { newId } from '../../../shared/lifecycle/ids.ts';
import { openAdmissionLab } from '../../support/admission-lab.ts';
import type { AdmissionLab, LabKey } from '../../support/admission-lab.ts';
import { openTcpProxy } from '../../support/tcp-proxy.ts';
import type { TcpProxy } from '../../support/tcp-proxy.ts';
import { createRecordingLog } from '../../support/recording-log.ts';
import { FAILED, RETENTION_MS } from '../../support/request-lab.ts';
import { openTestRedis, redisUrl } from '../../support/stores.ts';

/** The answer is lost on the way, and the ingress's client sends the admission again by itself. */
describe('an admission whose answer was lost', () => {
  let proxy: TcpProxy;
  let lab: AdmissionLab;
  let key: LabKey;
  /** What workers and others do meanwhile: their connection is not cut. */
  let others: Awaited<ReturnType<typeof openOthers>>;
  beforeAll(async () => {
    proxy = await openTcpProxy(redisUrl());
    lab = await openAdmissionLab({ url: proxy.url });
    lab.redis.on('error', () => undefined);
    key = await lab.key();
    others = await openOthers();
    // From then on Redis knows the script.
    await key.admit();
  });
  afterAll(async () => {
    await others.close();
    await lab.close();
    await proxy.close();
  });

  async function openOthers() {
    const { shard, tenantId, keyId } = key.principal;
    const client = await openTestRedis('worker');
    const requests = createRequestStore(client, lab.keyspace, { leaseMs: 10_000, disconnectGraceMs: 30_000 });
    const records = createRecordStore(client, lab.keyspace, { retentionMs: RETENTION_MS });
    return {
      // The body of these requests is none; whoever has claimed one finds that out.
      claim: (requestId: string) => requests.claim({ shard, requestId, tenantId, fence: 1 }),
      finish: (requestId: string) =>
        requests.finish({ shard, requestId, tenantId, keyId, queue: 'interactive', fence: 1 }, 0, FAILED),
      cancel: (requestId: string) => records.cancel(key.principal, requestId),
      voidLater: (requestId: string) => client.hset(lab.keys.record(requestId), 'state', 'void'),
      close: () => client.quit(),
    };
  }

  async function admitTwice(meanwhile: (requestId: string) => Promise<unknown>, channel = 'ingress') {
    const requestId = newId('req');
    const lost = proxy.cutNextReply(requestId).then(async () => {
      // Sent again only behind what happens meanwhile.
      proxy.set('silent');
      await meanwhile(requestId);
      proxy.set('pass');
    });
    const admission = key.admit({ requestId, body: '{}', channel });
    await lost;
    return (await admission).verdict;
  }

  it.each<[string, (requestId: string) => Promise<unknown>]>([
    ['waits in line', () => Promise.resolve()],
    ['runs', (requestId) => others.claim(requestId)],
    ['has ended', (requestId) => others.claim(requestId).then(() => others.finish(requestId))],
    ['was cancelled in line', (requestId) => others.cancel(requestId)],
  ])('is an admission for the caller who waits for a request that %s', async (_what, meanwhile) => {
    expect(await admitTwice(meanwhile)).toBe('admitted');
  });

  it('was accepted when it was first: a stream that is read again begins with the same time', async () => {
    const requestId = newId('req');
    const admit = createAdmission({
      ...{ store: lab.store, voidLater: () => undefined, isFull: () => false },
      pseudonyms: createPseudonyms(Buffer.alloc(32)),
      ...{ clock: systemClock, log: createRecordingLog() },
      accountStore: createAccountStore(lab.redis, lab.keyspace),
      // Its book is in Redis, and its tier has the usual rates.
      accounts: {} as unknown as AdmissionDeps['accounts'],
      routing: { current: () => ({ tiers: {}, models: new Map() }) } as unknown as AdmissionDeps['routing'],
    });
    // The client waits 50 ms before it connects again.
    void proxy.cutNextReply(requestId);

    const outcome = await admit({
      ...{ requestId, principal: key.principal, endpoint: 'chat.stream', stream: true, channel: 'ingress' },
      request: { messages: [{ role: 'user', content: 'Hi' }], maxTokens: 10, jsonMode: false },
      ...{ idempotency: undefined, onDisconnect: 'finish', answerStorage: undefined },
      ...{ isEnqueuedAtOnce: true, retentionMs: RETENTION_MS },
    });

    const acceptedAt = Number(await lab.redis.hget(lab.keys.record(requestId), 'acceptedAt'));
    expect(outcome).toMatchObject({ kind: 'admitted', envelope: { acceptedAt } });
    expect(outcome.figures.now).toBeGreaterThan(acceptedAt);
  });

  it('is none where the request was taken back, nor for whoever does not wait and finds that it runs', async () => {
    expect(await admitTwice((requestId) => others.voidLater(requestId))).toBe('void');
    expect(await admitTwice((requestId) => others.claim(requestId), '')).toBe('void');
  });
});
