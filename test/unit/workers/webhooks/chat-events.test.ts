import { expect, it } from '@jest/globals';

import type { FinishedNotice } from '../../../../shared/contracts/finished-notice.ts';
import type { WebhookEvent } from '../../../../shared/webhooks/publish.ts';
import { createChatEvents } from '../../../../workers/webhooks/publish-events.ts';
import { createRecordingLog } from '../../../support/recording-log.ts';

const noticeOf = (requestId: string, finishedAt: number): FinishedNotice => ({
  ...{ requestId, tenantId: 'ten_1', keyId: 'key_1', mode: 'live', tier: 'mobius', endpoint: 'chat', seq: 1 },
  ...{ finishReason: 'error', usage: { promptTokens: 1, completionTokens: 0 }, errorCode: 'timeout', finishedAt },
});

/** As the sink does with every event that somebody subscribes to. */
function openEvents(isAway = false) {
  const published: string[] = [];
  const log = createRecordingLog();
  const events = createChatEvents({
    events: {
      publish(events: readonly WebhookEvent[]) {
        if (isAway) throw Object.assign(new Error('Away'), { name: 'MongoNetworkError' });
        events.forEach(({ now }) => new Date(now).toISOString());
        published.push(...events.map(({ cause }) => cause));
        return Promise.resolve();
      },
    },
    watchAccount: () => Promise.resolve([]),
    gate: { nameOf: (_space, entityId) => Promise.resolve(entityId) },
    clock: { now: () => 0 },
    log,
  });
  return { events, published, log };
}

it('publishes what stands beside a notice that can never be published, and names the one that is lost', async () => {
  const { events, published, log } = openEvents();

  await events.publishNotices([noticeOf('req_1', 1), noticeOf('req_2', 9e15), noticeOf('req_3', 1)]);

  expect(published).toEqual(['req_1', 'req_3']);
  expect(log.lines).toMatchObject([{ level: 'error', fields: { requestId: 'req_2' } }]);
});

it('gives up nothing while MongoDB is away', async () => {
  const { events, log } = openEvents(true);

  await expect(events.publishNotices([noticeOf('req_1', 1), noticeOf('req_2', 1)])).rejects.toThrow('Away');

  expect(log.lines).toEqual([]);
});
