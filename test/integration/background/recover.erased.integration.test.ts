import { beforeEach, expect, it } from '@jest/globals';

import { createRecoverRequest } from '../../../shared/requests/recovery.ts';
import type { RecoverRequestDeps } from '../../../shared/requests/recovery.ts';
import { createErasureGate, gateAnswers } from '../../../shared/erasure-gate.ts';
import { createPseudonyms } from '../../../shared/domain/pseudonyms.ts';
import { createLedgerRepository } from '../../../shared/mongo/accounts/ledger-repository.ts';
import { createErasureRepository } from '../../../shared/mongo/compliance/erasure-repository.ts';
import { createAnswerRepository } from '../../../shared/mongo/requests/answer-repository.ts';
import { createRequestIntents } from '../../../shared/mongo/requests/request-intents.ts';
import { createQueueOrderStore } from '../../../shared/requests/body-store.ts';
import { createReplayStore } from '../../../shared/requests/replay-store.ts';
import { createRequestPresence } from '../../../shared/requests/rollback.ts';
import { unlimited } from '../../../shared/redis/time-limits.ts';
import { seqAt } from '../../../shared/domain/request-times.ts';
import { newId } from '../../../shared/lifecycle/ids.ts';
import { systemClock } from '../../../shared/lifecycle/clock.ts';
import { createRecordingLog } from '../../support/recording-log.ts';
import { labRequest, openRequestLab, REQUEST_TIMEOUT_MS, SHARD } from '../../support/request-lab.ts';
import type { LabRequest } from '../../support/request-lab.ts';
import { openTestMongo, uniqueName } from '../../support/stores.ts';
import { useStarted } from '../../support/use-service.ts';

const ENTITY = 'pupil';
const pseudonyms = createPseudonyms(Buffer.alloc(32, 7));

const lab = useStarted('lab', openRequestLab);
const mongo = useStarted('mongo', () => openTestMongo(uniqueName('recover')));

/** A request that Redis has lost, with the principal of its key. */
let lost: LabRequest;
beforeEach(async () => {
  const principal = await lab.tenant();
  const { admission } = await lab.admit({ principal });
  lost = labRequest(newId('req'), principal, { ...admission, now: admission.now - 1_000 });
  lost.envelope.request.entityId = ENTITY;
});

/** By a process that read the request's intent, slept through what happens in `meanwhile`, and goes on. */
function recoverAfter(meanwhile: () => Promise<void>, keyStillExists: boolean) {
  const { redis, keyspace, admissions } = lab;
  const { requestId, principal, envelope } = lost;
  const answers = createAnswerRepository(mongo);
  const gate = createErasureGate({ erasures: createErasureRepository(mongo), pseudonyms });
  const deps: RecoverRequestDeps = {
    presence: createRequestPresence(redis, keyspace, unlimited),
    async admit() {
      const { admission } = await lab.admit({ requestId, principal, withoutBody: true });
      return { kind: 'admitted', figures: admission, envelope, isQueued: false };
    },
    admissions,
    queueOrder: createQueueOrderStore(redis, keyspace, REQUEST_TIMEOUT_MS),
    replays: createReplayStore(redis, keyspace, { requestTimeoutMs: REQUEST_TIMEOUT_MS, limit: unlimited }),
    intents: createRequestIntents(mongo),
    answers: gateAnswers(answers, gate),
    gate,
    ledger: createLedgerRepository(mongo),
    principals: {
      async findByKey() {
        await meanwhile();
        return keyStillExists ? principal : undefined;
      },
    },
    clock: systemClock,
    log: createRecordingLog(),
  };
  const { tenantId } = principal;
  const intent = { requestId, tenantId, shard: SHARD, envelopeJson: JSON.stringify(envelope), replays: 0 };
  return createRecoverRequest(deps)(intent);
}

async function deleteEntity(): Promise<void> {
  const { tenantId, mode } = lost.principal;
  const [seconds, micros] = await lab.redis.time();
  const moment = { seq: Number(seconds) * 1_000_000 + Number(micros), now: Date.now() };
  await createErasureRepository(mongo).mark({ tenantId, mode }, pseudonyms.of(tenantId, ENTITY), moment);
}

const stateOf = () => lab.redis.hmget(lab.keys.record(lost.requestId), 'state', 'metadata');
const answerOf = () => createAnswerRepository(mongo).find({ ...lost.principal }, lost.requestId, Date.now());

it('a lost request is accepted again, and gets into line once its worker would have spoken', async () => {
  expect(await recoverAfter(() => Promise.resolve(), true)).toEqual({ kind: 'open', waitMs: 4_000 });

  expect(await stateOf()).toEqual(['accepted', null]);
});

it('a lost request has its place of before, too, if whoever admitted it again has died before it was in line', async () => {
  const { requestId, principal, envelope } = lost;
  await lab.admit({ requestId, principal, withoutBody: true });

  expect(await recoverAfter(() => Promise.resolve(), true)).toEqual({ kind: 'open' });

  const { acceptedAt } = envelope;
  expect(await lab.run(lost, 1)).toMatchObject({ seq: seqAt(acceptedAt), envelope: { acceptedAt } });
});

it('a lost request whose entity was deleted meanwhile does not run', async () => {
  expect(await recoverAfter(deleteEntity, true)).toEqual({ kind: 'ended' });

  expect(await stateOf()).toEqual(['void', null]);
  expect(await lab.redis.zscore(lab.keys.prioritized('interactive'), lost.requestId)).toBeNull();
  expect(await lab.redis.exists(lab.keys.body(lost.requestId))).toBe(0);
  expect(await lab.figures(lost.principal)).toMatchObject({ pendingMicro: 0 });
});

it('the end of a lost request whose key has gone is kept', async () => {
  expect(await recoverAfter(() => Promise.resolve(), false)).toEqual({ kind: 'ended' });

  expect(await answerOf()).toMatchObject({ fields: { status: 'failed' } });
});

it('nothing is kept of the end of a lost request whose entity was deleted meanwhile', async () => {
  expect(await recoverAfter(deleteEntity, false)).toEqual({ kind: 'ended' });

  expect(await answerOf()).toBeUndefined();
});
