import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';

import { createRecoverRequest } from '../../shared/admission/recover-request.ts';
import { seqAt } from '../../shared/domain/requests/acceptance-order.ts';
import { createLedgerRepository } from '../../shared/infra/mongo/accounts/ledger-repository.ts';
import { createAnswerRepository } from '../../shared/infra/mongo/requests/answer-repository.ts';
import { createPrincipalRepository } from '../../shared/infra/mongo/tenants/principal-repository.ts';
import { createLineStore } from '../../shared/infra/redis/requests/line-store.ts';
import { createReplayStore } from '../../shared/infra/redis/requests/replay-store.ts';
import { createRequestPresence } from '../../shared/infra/redis/requests/request-presence.ts';
import { createAnswerCache } from '../../shared/infra/redis/requests/stored-answers.ts';
import { unlimited } from '../../shared/infra/redis/timing.ts';
import { systemClock } from '../../shared/lifecycle/clock.ts';
import { createStoreAnswer } from '../../workers/pipeline/store-answer.ts';
import { createRecordingLog } from '../support/recording-log.ts';
import { FAILED, openRequestLab, REQUEST_TIMEOUT_MS, RETENTION_MS, SHARD } from '../support/request-lab.ts';
import type { RequestLab } from '../support/request-lab.ts';
import { openTestMongo, uniqueName } from '../support/stores.ts';
import { waitFor } from '../support/wait-for.ts';

const SHORT_MS = 50;

let lab: RequestLab;
beforeAll(async () => {
  lab = await openRequestLab();
});
afterAll(async () => {
  await lab.close();
});

describe('a request whose tenant keeps answers for a moment only', () => {
  it('is known to have ended after that, and not taken for one that Redis has lost', async () => {
    const { redis, keyspace, keys } = lab;
    const presence = createRequestPresence(redis, keyspace, unlimited);
    const storeAnswer = createStoreAnswer({
      answers: { store: () => Promise.reject(new Error('MongoDB keeps nothing of it')) },
      cache: createAnswerCache(redis, keyspace),
      retentionMs: RETENTION_MS,
      clock: systemClock,
      log: createRecordingLog(),
    });
    const request = await lab.admit();
    const { envelope, requestId } = request;
    const ref = request.ref(1);
    await lab.run(request, 1);

    expect(await lab.requests.finish(ref, 0, { ...FAILED, retentionMs: SHORT_MS })).toBe(true);
    await storeAnswer({ ref, envelope: { ...envelope, kept: { redisOnly: true } }, answer: { text: '' } });
    await waitFor(async () => ((await redis.exists(keys.record(requestId))) === 0 ? true : undefined), 'it to go');

    expect(await presence.look(SHARD, [requestId, 'req_unknown'])).toEqual(['ended', 'missing']);
  });
});

it('puts a request that is admitted again where it was in the order of acceptance', async () => {
  const request = await lab.admit();
  const acceptedAt = request.admission.now - 5_000;

  await createRequestPresence(lab.redis, lab.keyspace, unlimited).setAcceptedAt(SHARD, request.requestId, acceptedAt);

  expect(await lab.run(request, 1)).toMatchObject({ seq: seqAt(acceptedAt) });
});

it('puts nothing in the place of a request that Redis has lost meanwhile', async () => {
  const { redis, keyspace } = lab;

  await createRequestPresence(redis, keyspace, unlimited).setAcceptedAt(SHARD, 'req_lost', 1_700_000_000_000);

  expect(await redis.exists(keyspace.shard(SHARD).record('req_lost'))).toBe(0);
});

it('puts it there, too, if whoever admitted it again has died before it was in line', async () => {
  const { redis, keyspace } = lab;
  const mongo = await openTestMongo(uniqueName('recovery'));
  const request = await lab.admit({ withoutBody: true });
  const { requestId, envelope } = request;
  const acceptedAt = request.admission.now - 5_000;
  const settings = { requestTimeoutMs: REQUEST_TIMEOUT_MS, limit: unlimited };
  const recover = createRecoverRequest({
    presence: createRequestPresence(redis, keyspace, unlimited),
    admit: () => Promise.reject(new Error('It is admitted')),
    line: createLineStore(redis, keyspace, REQUEST_TIMEOUT_MS),
    replays: createReplayStore(redis, keyspace, settings),
    answers: createAnswerRepository(mongo),
    ledger: createLedgerRepository(mongo),
    principals: createPrincipalRepository(mongo),
    clock: systemClock,
    log: createRecordingLog(),
  });

  const envelopeJson = JSON.stringify({ ...envelope, acceptedAt });
  const recovery = await recover({ requestId, tenantId: envelope.tenantId, shard: SHARD, envelopeJson, replays: 0 });
  await mongo.close();

  expect(recovery).toEqual({ kind: 'open' });
  expect(await lab.run(request, 1)).toMatchObject({ seq: seqAt(acceptedAt), envelope: { acceptedAt } });
});
