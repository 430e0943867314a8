import { setTimeout as pause } from 'node:timers/promises';

import { afterAll, beforeAll, expect, it } from '@jest/globals';

import type { StoredAnswer } from '../../shared/contracts/stored-answer.ts';
import { createAnswerCache } from '../../shared/infra/redis/requests/stored-answers.ts';
import { systemClock } from '../../shared/lifecycle/clock.ts';
import { createStoreAnswer } from '../../workers/pipeline/store-answer.ts';
import { createRecordingLog } from '../support/recording-log.ts';
import { endingOf, openRequestLab, RETENTION_MS, SHARD } from '../support/request-lab.ts';
import type { RequestLab } from '../support/request-lab.ts';

let lab: RequestLab;
beforeAll(async () => {
  lab = await openRequestLab();
});
afterAll(async () => {
  await lab.close();
});

/** Redis may come back without its last second between two reads: the record had ended by then, and its text is gone. */
it('keeps no answer without its text, but the one that is there once its end has been replayed', async () => {
  const kept: Pick<StoredAnswer, 'entries'>[] = [];
  const storeAnswer = createStoreAnswer({
    answers: { store: (answer) => Promise.resolve(void kept.push(answer)) },
    cache: createAnswerCache(lab.redis, lab.keyspace),
    retentionMs: RETENTION_MS,
    clock: systemClock,
    log: createRecordingLog(),
  });
  const request = await lab.admit();
  const { requestId, envelope } = request;
  await lab.run(request, 1);
  await lab.requests.append(request.ref(1), 1, ['a']);
  await lab.requests.finish(request.ref(1), 1, endingOf(request, 'b', { prompt: 1, completion: 2 }));
  const stream = lab.keys.stream(requestId);
  const [begin, end] = await lab.redis.xrange(stream, '-', '+');
  await lab.redis.xdel(stream, end?.[0] ?? '');

  expect(await createAnswerCache(lab.redis, lab.keyspace).read(SHARD, requestId)).toBeUndefined();
  const storing = storeAnswer({ ref: request.ref(1), envelope: { ...envelope, kept: {} }, answer: { text: 'ab' } });
  await pause(200);
  await lab.redis.del(stream);
  for (const [id, fields] of [begin, end].flatMap((entry) => (entry === undefined ? [] : [entry])))
    await lab.redis.xadd(stream, id, ...fields);
  await storing;

  expect(kept.map(({ entries }) => entries.map(({ lastSeq }) => lastSeq))).toEqual([[1, 4]]);
});
