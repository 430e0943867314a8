import { afterAll, beforeAll, expect, it } from '@jest/globals';
import type { Connection } from 'mongoose';

import { createConversationRepository } from '../../shared/infra/mongo/entities/conversation-repository.ts';
import { ensureIndexes } from '../../shared/infra/mongo/catalogue.ts';
import { systemClock } from '../../shared/lifecycle/clock.ts';
import { createDeleteTurn, createSaveTurn } from '../../workers/pipeline/save-turn.ts';
import type { Generated } from '../../workers/pipeline/stage.ts';
import { createRecordingLog } from '../support/recording-log.ts';
import { openTestMongo, uniqueName } from '../support/stores.ts';

let connection: Connection;
beforeAll(async () => {
  connection = await openTestMongo(uniqueName('turns'));
  await ensureIndexes(connection);
});
afterAll(async () => {
  await connection.close();
});

const SPACE = { tenantId: 'ten_1', mode: 'live' } as const;

/** What both stages read of a run whose fence is 1. */
function runOf(claimedAt: number, text: string): Generated {
  return {
    ref: { fence: 1 },
    claimedAt,
    envelope: { ...SPACE, requestId: 'req_1', retentionMs: 1_000, request: { entityId: 'pupil' } },
    seq: 7,
    lease: { signal: new AbortController().signal },
    entity: { rowId: undefined, context: {}, unseen: [{ role: 'user', content: 'Hi' }] },
    outcome: { finishReason: 'stop' },
    answer: { text },
  } as unknown as Generated;
}

it('is left alone by a delivery that was overtaken, also where a rollback of Redis gave both the same number', async () => {
  const conversations = createConversationRepository(connection);
  const saveTurn = createSaveTurn({ conversations, clock: systemClock, log: createRecordingLog() });
  const deleteTurn = createDeleteTurn({ conversations });
  const [slept, later] = [runOf(1_000, 'first'), runOf(2_000, 'second')];

  await saveTurn(later);
  await saveTurn(slept);
  // Its end is refused.
  await deleteTurn(slept);

  const stored = await conversations.find(SPACE, 'pupil');
  expect(stored?.history.map(({ content }) => content)).toEqual(['Hi', 'second']);
});
