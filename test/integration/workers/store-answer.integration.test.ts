import { setTimeout as pause } from 'node:timers/promises';

import { beforeAll, describe, expect, it } from '@jest/globals';

import { namedUntil } from '../../../shared/contracts/jobs.ts';
import type { StoredAnswer } from '../../../shared/contracts/jobs.ts';
import { createAnswerRepository } from '../../../shared/mongo/requests/answer-repository.ts';
import type { AnswerRepository } from '../../../shared/mongo/requests/answer-repository.ts';
import { createReplayStore } from '../../../shared/requests/replay-store.ts';
import { createAnswerCache } from '../../../shared/requests/answers.ts';
import { unlimited } from '../../../shared/redis/time-limits.ts';
import { newId } from '../../../shared/lifecycle/ids.ts';
import { createStoreAnswer } from '../../../workers/pipeline/finish.ts';
import { createRecordingLog } from '../../support/recording-log.ts';
import {
  endingOf,
  FAILED,
  openRequestLab,
  REQUEST_TIMEOUT_MS,
  RETENTION_MS,
  SHARD,
} from '../../support/request-lab.ts';
import type { LabRequest } from '../../support/request-lab.ts';
import { openTestMongo, uniqueName } from '../../support/stores.ts';
import { useStarted } from '../../support/use-service.ts';

const lab = useStarted('lab', openRequestLab);
const mongo = useStarted('mongo', () => openTestMongo(uniqueName('answers')));
let answers: AnswerRepository;
beforeAll(() => {
  answers = createAnswerRepository(mongo);
});

const cacheOf = () => createAnswerCache(lab.redis, lab.keyspace);

/** `before`: what happens while the worker sleeps that has read the end of a request and is about to keep it. */
function storeAnswerAfter(before: () => Promise<void>) {
  return createStoreAnswer({
    answers: {
      async store(answer) {
        await before();
        await answers.store(answer);
      },
    },
    cache: cacheOf(),
    retentionMs: RETENTION_MS,
    log: createRecordingLog(),
  });
}

const keptOf = (request: LabRequest, text: string) => ({
  ...{ delivery: request.ref(1), answer: { text } },
  envelope: { ...request.envelope, kept: {} },
});

async function failedRequest(): Promise<LabRequest> {
  const request = await lab.admit();
  const { owner } = await lab.run(request, 1);
  expect(await lab.requests.finish({ ...request.ref(1), owner }, 0, FAILED)).toBe(true);
  return request;
}

/** An operator has a failed request run again. */
async function replay({ requestId, principal, envelope }: LabRequest): Promise<void> {
  const replays = createReplayStore(lab.redis, lab.keyspace, {
    requestTimeoutMs: REQUEST_TIMEOUT_MS,
    limit: unlimited,
  });
  await replays.reopen(SHARD, envelope);
  const admission = await lab.admissions.admit(
    {
      ...{ requestId, principal, endpoint: 'chat', tier: 'mobius', queue: 'interactive', channel: '' },
      ...{ onDisconnect: 'finish', idempotency: undefined, rates: { promptMicro: 1, completionMicro: 1 } },
      ...{ promptTokens: 10, maxTokens: 100, metadataJson: undefined, entityHash: undefined },
    },
    Date.now(),
  );
  expect(admission.verdict).toBe('admitted');
  await replays.requeue(SHARD, envelope, 1);
}

/** Redis may come back without its last second between two reads: the record had ended by then, and its text is gone. */
it('keeps no answer without its text, but the one that is there once its end has been replayed', async () => {
  const kept: Pick<StoredAnswer, 'entries'>[] = [];
  const storeAnswer = createStoreAnswer({
    answers: { store: (answer) => Promise.resolve(void kept.push(answer)) },
    cache: createAnswerCache(lab.redis, lab.keyspace),
    retentionMs: RETENTION_MS,
    log: createRecordingLog(),
  });
  const request = await lab.admit();
  const { requestId } = request;
  await lab.run(request, 1);
  await lab.requests.append(request.ref(1), 1, ['a']);
  await lab.requests.finish(request.ref(1), 1, endingOf(request, 'b', { prompt: 1, completion: 2 }));
  const stream = lab.keys.stream(requestId);
  const [begin, end] = await lab.redis.xrange(stream, '-', '+');
  await lab.redis.xdel(stream, end?.[0] ?? '');

  expect(await createAnswerCache(lab.redis, lab.keyspace).read(SHARD, requestId)).toBeUndefined();
  const storing = storeAnswer(keptOf(request, 'ab'));
  await pause(200);
  await lab.redis.del(stream);
  for (const [id, fields] of [begin, end].flatMap((entry) => (entry === undefined ? [] : [entry])))
    await lab.redis.xadd(stream, id, ...fields);
  await storing;

  expect(kept.map(({ entries }) => entries.map(({ lastSeq }) => lastSeq))).toEqual([[1, 4]]);
});

it('keeps the answer of a later run, not a failure that was read before', async () => {
  const request = await failedRequest();
  const { requestId, principal } = request;
  const storeLate = storeAnswerAfter(async () => {
    await replay(request);
    const { owner } = await lab.run(request, 2);
    const ending = endingOf(request, 'Hi', { prompt: 1, completion: 1 });
    expect(await lab.requests.finish({ ...request.ref(2), owner }, 0, ending)).toBe(true);
    await storeAnswerAfter(() => Promise.resolve())(keptOf(request, 'Hi'));
  });

  await storeLate(keptOf(request, ''));

  const space = { tenantId: principal.tenantId, mode: 'live' } as const;
  const kept = await answers.find(space, requestId, Date.now());
  expect(kept?.fields['status']).toBe('completed');
  expect(kept?.entries[0]?.payload).toContain('Hi');
});

it('sets no time to live for a request that is run again meanwhile', async () => {
  const request = await failedRequest();
  const storeLate = storeAnswerAfter(() => replay(request));

  await storeLate(keptOf(request, ''));

  expect(await lab.redis.hget(lab.keys.record(request.requestId), 'state')).toBe('accepted');
  expect(await lab.redis.pttl(lab.keys.record(request.requestId))).toBe(-1);
});

const DAY_MS = 86_400_000;

describe('the answer of a tenant that keeps answers for longer than an Idempotency-Key lives', () => {
  const idempotency = { name: 'report-42', fingerprint: 'f' };
  async function stored(requestId: string, tenantId: string, acceptedAt: number): Promise<StoredAnswer> {
    const answer: StoredAnswer = {
      ...{ requestId, tenantId, mode: 'live', idempotency, entries: [] },
      fields: { tenant: tenantId, state: 'done', acceptedAt: String(acceptedAt), finishedAt: String(acceptedAt + 5) },
      expiresAt: acceptedAt + 30 * DAY_MS,
    };
    await answers.store(answer);
    return answer;
  }
  const restore = (answer: StoredAnswer, now: number) =>
    cacheOf().restore(SHARD, answer, { ttlMs: 60_000, namedMs: namedUntil(answer) - now });

  it('is found by its key for 24 hours from its acceptance, and by its id until it goes', async () => {
    const [space, acceptedAt] = [{ tenantId: newId('ten'), mode: 'live' } as const, Date.now()];
    await stored('req_old', space.tenantId, acceptedAt);
    const named = async (now: number) => (await answers.findNamed(space, idempotency.name, now))?.requestId;

    expect(await named(acceptedAt + DAY_MS - 1)).toBe('req_old');
    expect(await named(acceptedAt + DAY_MS)).toBeUndefined();
    await stored('req_new', space.tenantId, acceptedAt + DAY_MS);
    expect(await named(acceptedAt + DAY_MS)).toBe('req_new');
    expect(await answers.find(space, 'req_old', acceptedAt + DAY_MS)).toBeDefined();
  });

  it('takes its key only while that lives when it comes back to Redis', async () => {
    const answer = await stored(newId('req'), newId('ten'), Date.now() - DAY_MS);
    const isNamed = () => cacheOf().isNamed(SHARD, idempotency.name);

    await restore(answer, Date.now());
    expect([await isNamed(), await lab.redis.exists(lab.keys.record(answer.requestId))]).toEqual([false, 1]);

    await restore(answer, Date.now() - 1_000);
    expect(await isNamed()).toBe(true);
  });
});
