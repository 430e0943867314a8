import { expect, it } from '@jest/globals';

import { systemClock } from '../../../../shared/lifecycle/clock.ts';
import type { BatchRow } from '../../../../shared/mongo/batches/batch-repository.ts';
import type { AdmissionCall, AdmissionOutcome } from '../../../../shared/requests/admission.ts';
import { createLineTokens } from '../../../../workers/batches/line-state.ts';
import { openBatch } from '../../../../workers/batches/open-batch.ts';
import { createFindSender, createSendLine } from '../../../../workers/batches/send-line.ts';
import { createRecordingLog } from '../../../support/recording-log.ts';
import { principalOf } from '../../../support/request-lab.ts';

/** Of which lines may fill 8,000. */
const LIMITS = { rpm: 10, tpm: 10_000, dailyRequests: 0, chatRpm: 10, streamRpm: 10 };

/** How a line is admitted whose prompt has so many tokens, where nothing is known of its batch. */
async function callOf(promptTokens: number): Promise<AdmissionCall | undefined> {
  const calls: AdmissionCall[] = [];
  const sendLine = createSendLine({
    routing: { current: () => ({ tiers: {}, models: new Map(), providers: new Map(), unreadable: new Map() }) },
    admit: (call) => {
      calls.push(call);
      return Promise.resolve({ kind: 'joined' } as AdmissionOutcome);
    },
    enqueuer: { enqueue: () => Promise.resolve(), voidLater: () => undefined },
    watch: { isDown: () => false, takeProbe: () => false },
    leaderId: 'wrk_1',
    log: createRecordingLog(),
  });
  const request = { messages: [{ role: 'user', content: 'abcd'.repeat(promptTokens) }], maxTokens: 4_096 };
  await sendLine(
    { index: 0, requestId: 'req_1', customId: null, requestJson: JSON.stringify({ ...request, jsonMode: false }) },
    principalOf({ limits: LIMITS }),
    { batchId: 'batch_1', tokens: createLineTokens() },
  );
  return calls[0];
}

it.each([
  ['half of what lines may fill, so that two fit', 1, 4_000],
  ['half of it with a prompt of a quarter', 2_000, 4_000],
  ['more than half with a prompt just below it, so that one fits', 3_900, 4_925],
  ['a quarter of what a prompt of half of it leaves, and not the prompt alone', 4_000, 5_000],
  ['its prompt alone where that is more than lines may fill', 9_000, 9_000],
])('a line of which nothing is known counts %s', async (_what, promptTokens, counted) => {
  expect((await callOf(promptTokens))?.countedTokens).toBe(counted);
});

it.each([
  [0, { fault: { code: 'conflict' } }],
  [60, { principal: { retentionSeconds: 60 } }],
])('a batch whose tenant keeps answers for %i s by now has this sender', async (retentionSeconds, sender) => {
  const principal = principalOf({ retentionSeconds });
  const findSender = createFindSender({ findByKey: () => Promise.resolve(principal) }, systemClock);
  const row = { tenantId: 'ten_1', keyId: 'key_1' } as BatchRow;
  expect(await findSender(openBatch(row, { completed: 0, failed: 0 }))).toMatchObject(sender);
});
