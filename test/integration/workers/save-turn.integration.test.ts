import { beforeAll, expect, it } from '@jest/globals';

import { createConversationRepository } from '../../../shared/mongo/entities/conversation-repository.ts';
import { ensureIndexes } from '../../../shared/mongo/administration/catalogue.ts';
import type { FinishInput } from '../../../shared/requests/delivery.ts';
import { systemClock } from '../../../shared/lifecycle/clock.ts';
import { createFinish, createSaveTurn } from '../../../workers/pipeline/finish.ts';
import type { Generated } from '../../../workers/pipeline/stage.ts';
import { idleDelivery, idleRun } from '../../support/idle-run.ts';
import { plainEnvelope } from '../../support/plain-envelope.ts';
import { createRecordingLog } from '../../support/recording-log.ts';
import { openTestMongo, uniqueName } from '../../support/stores.ts';
import { waitUntil } from '../../support/wait-for.ts';
import { useStarted } from '../../support/use-service.ts';

const connection = useStarted('connection', () => openTestMongo(uniqueName('turns')));
beforeAll(async () => {
  await ensureIndexes(connection);
});

const SPACE = { tenantId: 'ten_1', mode: 'live' } as const;

const OUTCOME = { finishReason: 'stop', usage: { promptTokens: 1, completionTokens: 1 } } as const;

/** A run whose fence is 1, with an answer. */
function runOf(claimedAt: number, text: string, end: (ending: FinishInput) => boolean = () => true): Generated {
  const delivery = idleDelivery({ finish: (ending) => Promise.resolve(end(ending)) });
  const envelope = { ...plainEnvelope({ entityId: 'pupil' }), ...SPACE, retentionMs: 1_000 };
  const run = idleRun({ delivery, claimedAt, envelope, seq: 7 });
  return {
    ...{ ...run, answer: { ...run.answer, text } },
    entity: { rowId: undefined, context: {}, unseen: [{ role: 'user', content: 'Hi' }] },
    ...{ history: [], submitted: [], context: [], targets: [] },
    prompt: { instruction: undefined, history: [], submitted: [] },
    outcome: OUTCOME,
  };
}

/** Saves the turns of two deliveries, the later one first, and ends the one that slept. */
async function endSlept(isFirst: boolean, end: (ending: FinishInput) => boolean): Promise<void> {
  const conversations = createConversationRepository(connection);
  const log = createRecordingLog();
  const saveTurn = createSaveTurn({ conversations, clock: systemClock, log });
  const finish = createFinish({ conversations, clock: systemClock, log, events: { emit: () => undefined } });
  const slept = runOf(1_000, 'first', end);
  if (!isFirst) await saveTurn(runOf(2_000, 'second'));
  await saveTurn(slept);

  await finish(slept, OUTCOME);
}

async function stored(): Promise<string[]> {
  const entity = await createConversationRepository(connection).find(SPACE, 'pupil');
  return (entity?.history ?? []).map(({ content }) => content);
}

it.each<[string, (ending: FinishInput) => boolean]>([
  ['its end was refused', () => false],
  [
    'its caller was told that it failed, so that nobody pays for it',
    ({ whenUnbilled }) => {
      whenUnbilled?.();
      return true;
    },
  ],
])('is deleted where %s', async (_, end) => {
  await endSlept(true, end);

  await waitUntil(async () => (await stored()).length === 0, 'its turn to go');
});

it('is left alone by a delivery that was overtaken, also where a rollback of Redis gave both the same number', async () => {
  await endSlept(false, () => false);

  expect(await stored()).toEqual(['Hi', 'second']);
});
