import { afterEach, describe, expect, it } from '@jest/globals';

import {
  chatOf,
  choiceOf,
  errorOf,
  expectUncharged,
  ledgerOf,
  parseSse,
  postChat,
  postStream,
  requestIdOf,
  textOf,
} from '../../support/chat.ts';
import { useService } from '../../support/use-service.ts';

/** Harmless, and always flagged: it is there for tests. */
const FLAGGED = 'parley moderation test';

describe('content moderation', () => {
  const service = useService();
  afterEach(() => {
    service.provider.restore();
    service.provider.reset();
  });

  describe('of the submitted messages', () => {
    it.each([
      ['complete', postChat],
      ['streamed', postStream],
    ])('refuses them before any provider is asked, and charges nothing (%s)', async (_kind, post) => {
      const { key, tenantId } = await service.startTenant({ credits: 10_000 });

      const response = await post(service.app, key, chatOf(`This is a ${FLAGGED}.`));

      expect(response.status).toBe(400);
      expect(errorOf(response)).toMatchObject({ code: 'content_policy_violation', type: 'invalid_request_error' });
      expect(service.provider.stats().calls).toBe(0);
      await expectUncharged(service, tenantId, 10_000);
    });

    it.each(['user', 'assistant', 'system'])(
      'content moderation of the submitted messages looks at those of every role: %s',
      async (role) => {
        const { key } = await service.startTenant();
        const messages = [
          { role: 'user', content: 'Hello' },
          { role, content: FLAGGED },
          { role: 'user', content: 'And now?' },
        ];

        expect((await postChat(service.app, key, { messages })).status).toBe(400);
      },
    );

    it('content moderation of the submitted messages is active for test keys, too', async () => {
      const { key } = await service.startTenant({ key: { mode: 'test' } });

      expect((await postChat(service.app, key, chatOf(FLAGGED))).status).toBe(400);
    });

    it('content moderation of the submitted messages is logged by category, without the text', async () => {
      const { key } = await service.startTenant();

      const response = await postChat(service.app, key, chatOf(`canary ${FLAGGED}`));

      const requestId = requestIdOf(response);
      const lines = service.log.lines.filter(({ fields }) => fields.requestId === requestId);
      expect(lines).toContainEqual(
        expect.objectContaining({ fields: expect.objectContaining({ categories: ['test'] }) }),
      );
      expect(JSON.stringify(lines)).not.toContain('canary');
    });

    it('content moderation of the submitted messages follows the tenant’s own settings', async () => {
      const insult = chatOf('You are a worthless idiot.');
      const strict = await service.startTenant({ tenant: { moderation: { thresholds: { harassment: 0.1 } } } });
      const lax = await service.startTenant({ tenant: { moderation: { disabled: ['harassment'] } } });

      expect((await postChat(service.app, strict.key, insult)).status).toBe(400);
      expect((await postChat(service.app, lax.key, insult)).status).toBe(200);
    });
  });

  describe('of the answer', () => {
    it('ends a stream with content_filter and lets nothing after it out', async () => {
      service.provider.change({ text: `A harmless beginning, then a ${FLAGGED} and canary words.`, chunk_ms: 2 });
      const { key } = await service.startTenant();

      const response = await postStream(service.app, key, chatOf('Go on'));

      const events = parseSse(String(response.body));
      expect(textOf(events)).toBe('A harmless beginning, then a ');
      expect(choiceOf(events.at(-2)?.chunk).finish_reason).toBe('content_filter');
      expect(events.at(-1)?.chunk).toBeUndefined();
      expect(events.map(({ id }) => id)).toEqual(events.map((_, index) => index + 1));
    });

    it('cuts a complete answer at the same place', async () => {
      service.provider.change({ text: `A harmless beginning, then a ${FLAGGED} and canary words.` });
      const { key } = await service.startTenant();

      const response = await postChat(service.app, key, chatOf('Go on'));

      expect(response.status).toBe(200);
      expect(response.body.choices[0]).toMatchObject({
        message: { content: 'A harmless beginning, then a ' },
        finish_reason: 'content_filter',
      });
    });

    it.each([1, 3, 8, 40])('does not depend on how the answer is cut into %d chunks', async (chunks) => {
      service.provider.change({ text: `Well, this is a ${FLAGGED}. Yes.`, chunks });
      const { key } = await service.startTenant();

      const response = await postStream(service.app, key, chatOf('Go on'));

      expect(textOf(parseSse(String(response.body)))).toBe('Well, this is a ');
    });

    it('is charged for what was shown, as a flagged estimate', async () => {
      service.provider.change({ text: `one two three four ${FLAGGED} ${'more '.repeat(200)}` });
      const { key } = await service.startTenant();

      const response = await postStream(service.app, key, chatOf('Count'));

      expect(await ledgerOf(service, response)).toMatchObject({
        finishReason: 'content_filter',
        estimated: true,
        completionTokens: 5,
      });
    });

    it('content moderation of the answer is not charged when nothing was shown', async () => {
      service.provider.change({ text: `${FLAGGED} at once` });
      const { key, tenantId } = await service.startTenant({ credits: 10_000 });

      const response = await postStream(service.app, key, chatOf('Count'));

      const [final, done] = parseSse(String(response.body));
      expect(final?.chunk).toMatchObject({ choices: [{ delta: {}, finish_reason: 'content_filter' }] });
      expect(done?.chunk).toBeUndefined();
      await expectUncharged(service, tenantId, 10_000);
    });

    it('content moderation of the answer ends the provider’s call', async () => {
      service.provider.change({ text: `${FLAGGED} ${'and on '.repeat(500)}`, chunk_ms: 20 });
      const { key } = await service.startTenant();

      const response = await postStream(service.app, key, chatOf('Go on'));

      expect(response.status).toBe(200);
      const counted = service.provider.request(requestIdOf(response));
      expect(counted?.completion_tokens).toBeLessThan(200);
    });

    it('does not let ordinary text wait for more than its last words', async () => {
      service.provider.change({
        text: 'one two three four five six seven',
        chunks: 7,
        fail: 'truncate',
        fail_after: 6,
      });
      const { key } = await service.startTenant();

      const response = await postStream(service.app, key, chatOf('Count'));

      expect(textOf(parseSse(String(response.body)))).toMatch(/^one two three four/);
    });
  });
});
