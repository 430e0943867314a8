import { expect, it } from '@jest/globals';

import { itemsOf, postLines } from '../../support/batch-client.ts';
import { openTcpProxy } from '../../support/tcp-proxy.ts';
import { mongoUri, uniqueName } from '../../support/stores.ts';
import { useService, useStarted } from '../../support/use-service.ts';
import { waitFor } from '../../support/wait-for.ts';

/** MongoDB's driver looks again for a server whose connection was cut after half a second, unless told otherwise. */
const SOON = { minHeartbeatFrequencyMS: '20' };

const DATABASE = uniqueName('away');
const LINES = 2;
/** For a machine that runs much else beside. */
const BUSY_MS = 90_000;

const proxy = useStarted('proxy', () => openTcpProxy(mongoUri(DATABASE), SOON));

const service = useService(() => ({ workers: 0, env: { MONGODB_URI: proxy.url } }));

it('a batch without an Idempotency-Key that was answered 503 is not charged, whichever write MongoDB went away behind', async () => {
  // It has another way to MongoDB, and finds at once what was written.
  await service.startWorker({ MONGODB_URI: mongoUri(DATABASE) });
  let refused = 0;

  for (let nth = 1, wasReached = true; wasReached; nth += 1) {
    const { key, tenantId } = await service.startTenant();
    let answers = 0;
    // What MongoDB was asked last has happened, and the ingress cannot know.
    proxy.cutReplies(() => {
      answers += 1;
      if (answers === nth) proxy.set('reset');
      return answers >= nth;
    });
    const first = await postLines(service, key, itemsOf(LINES));
    proxy.cutReplies(undefined);
    proxy.set('pass');
    if (first.status !== 202) {
      expect([nth, first.status]).toEqual([nth, 503]);
      refused += 1;
      await waitFor(
        async () => {
          const { status } = await postLines(service, key, itemsOf(LINES));
          return status === 202 ? true : undefined;
        },
        'the batch to be taken',
        BUSY_MS,
      );
    }
    wasReached = answers >= nth;

    const count = async () => {
      const [open, charges] = await Promise.all([
        service.models.batches.countDocuments({ tenantId, openShard: { $exists: true } }),
        service.models.ledger.countDocuments({ tenantId, type: 'usage' }),
      ]);
      return { open, charges };
    };
    await waitFor(
      async () => {
        const { open, charges } = await count();
        return open === 0 && charges >= LINES ? true : undefined;
      },
      'all that was taken to end',
      BUSY_MS,
    );
    expect([nth, await count()]).toEqual([nth, { open: 0, charges: LINES }]);
  }

  expect(refused).toBeGreaterThan(5);
  // About ten answers; each outage is noticed after two seconds, and each batch takes one.
}, 600_000);
