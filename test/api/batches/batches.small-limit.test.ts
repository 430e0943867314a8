import { describe, expect, it } from '@jest/globals';
import request from 'supertest';

import { itemsOf, postLines } from '../../support/batch-client.ts';
import { chatOf, postChat } from '../../support/chat.ts';
import { useService } from '../../support/use-service.ts';
import { waitFor } from '../../support/wait-for.ts';

describe('a batch of a key whose tokens a minute are fewer than the longest answer', () => {
  const service = useService();

  it('runs beside other requests of the key', async () => {
    // Four fifths of it are for lines, and the longest answer of a line has 4,096 tokens.
    const { key } = await service.startTenant({ key: { tpm: 4_000 } });
    expect((await postChat(service.app, key, chatOf('Hello', { max_tokens: 50 }))).status).toBe(200);

    const { body } = await postLines(service, key, itemsOf(2));

    const ended = await waitFor(
      async () => {
        const found = await request(service.app)
          .get(`/platform/v1/batches/${String(body.id)}`)
          .auth(key, { type: 'bearer' });
        return found.body.status === 'completed' ? found.body : undefined;
      },
      'the end of the batch',
      20_000,
    );
    expect(ended.request_counts).toEqual({ total: 2, completed: 2, failed: 0 });
  });
});
