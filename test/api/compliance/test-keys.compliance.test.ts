import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';

import { ledgerOf, postChat } from '../../support/chat.ts';
import { filesOf } from '../../support/compliance.ts';
import { openDeletionCase, useDeletionService } from '../../support/compliance-lab.ts';
import type { DeletionCase } from '../../support/compliance-lab.ts';
import { findEverywhere } from '../../support/search-stores.ts';
import { makeKey } from '../../support/tenant-keys.ts';
import { linesOf } from '../../support/zip.ts';

const service = useDeletionService();
let live: DeletionCase;
let test: DeletionCase;
beforeEach(async () => {
  live = await openDeletionCase(service);
  const { id: keyId, value: key } = await makeKey(live.api, { mode: 'test', scopes: ['*'] });
  test = await openDeletionCase(service, { tenantId: live.tenant.tenantId, keyId, key });
});
afterEach(() => Promise.all([live.receiver.close(), test.receiver.close()]));

const wordsOf = ({ entity, word }: DeletionCase) => [entity, encodeURIComponent(entity), word, word.toLowerCase()];
/** Where something of a case is. */
const placesOf = async (one: DeletionCase) => (await findEverywhere(service, wordsOf(one))).sort();

describe('a deletion of all conversations', () => {
  it('that a test key asks for leaves none of test keys anywhere, and all of live keys', async () => {
    await live.leaveTraces();
    await test.leaveTraces();
    const before = await placesOf(live);
    const running = service.provider.stats().calls;

    const deletion = await test.delete({ scope: 'tenant' });

    expect(await placesOf(test)).toEqual([]);
    for (const [store, count] of Object.entries(deletion.report)) expect([store, count > 0]).toEqual([store, true]);
    expect(await placesOf(live)).toEqual(before);
    expect(service.provider.stats().calls).toBe(running);
    const { body } = await live.api('get', `/entities/${encodeURIComponent(live.entity)}/history`);
    expect(body.data).not.toEqual([]);
    expect((await live.api('get', '/compliance/exports')).body.data).toMatchObject([
      { status: 'completed' },
      { status: 'completed' },
    ]);
    expect((await live.api('get', '/compliance/deletions')).body.data).toEqual([]);
    expect(test.receiver.received.map((each) => each.body.type)).toContain('compliance.deletion.completed');
    expect(live.receiver.received.map((each) => each.body.type)).not.toContain('compliance.deletion.completed');
    // Ends what runs.
    await live.delete({ scope: 'tenant' });
    expect(await placesOf(live)).toEqual([]);
  }, 180_000);

  it('that a live key asks for leaves none of either: it may be asked for by law', async () => {
    for (const one of [live, test]) await ledgerOf(service, await postChat(service.app, one.tenant.key, one.said()));

    await live.delete({ scope: 'tenant' });

    expect(await placesOf(live)).toEqual([]);
    expect(await placesOf(test)).toEqual([]);
  }, 60_000);
});

describe('a deletion of an entity that both modes have', () => {
  const SHARED = 'a pupil of both';
  const say = async (one: DeletionCase) =>
    ledgerOf(service, await postChat(service.app, one.tenant.key, one.said({ entity_id: SHARED, metadata: {} })));
  const isThere = async ({ api }: DeletionCase) => (await api('get', `/entities/${SHARED}`)).status === 200;

  it('takes the test one alone when a test key asks, and both when a live key does', async () => {
    for (const one of [live, test]) await say(one);

    await test.delete({ scope: 'entity', entity_id: SHARED });

    expect([await isThere(live), await isThere(test)]).toEqual([true, false]);
    const entities = async () =>
      ((await live.api('get', '/usage/requests?order=asc')).body.data as { entity_id: string }[]).map(
        (each) => each.entity_id,
      );
    const pseudonym = expect.stringMatching(/^erased_/);
    expect(await entities()).toEqual([SHARED, pseudonym]);
    // What was accepted before stores nothing; what comes after it does.
    await say(test);
    expect([await isThere(live), await isThere(test)]).toEqual([true, true]);

    await live.delete({ scope: 'entity', entity_id: SHARED });

    expect([await isThere(live), await isThere(test)]).toEqual([false, false]);
    expect(await entities()).toEqual([pseudonym, pseudonym, pseudonym]);
  }, 60_000);
});

describe('an export', () => {
  it.each<[string, () => DeletionCase, () => DeletionCase]>([
    ['a test key', () => test, () => live],
    ['a live key', () => live, () => test],
  ])(
    'that %s asks for has what keys of its mode have said and done, and nothing of the other',
    async (_who, own, other) => {
      for (const one of [live, test]) {
        await one.subscribe();
        await one.api('put', `/entities/${encodeURIComponent(one.entity)}`, { name: one.word });
        await ledgerOf(service, await postChat(service.app, one.tenant.key, one.said()).set('Idempotency-Key', 'once'));
        await one.api('post', '/compliance/exports', { scope: 'entity', entity_id: one.entity });
      }

      const files = await filesOf(service, own().tenant.key, { scope: 'tenant' });

      const text = [...files.values()].map(String).join('\n');
      for (const word of [own().entity, own().word]) expect(text).toContain(word);
      for (const word of [other().entity, other().word]) expect(text).not.toContain(word);
      const rows = (name: string) => linesOf(files.get(`${name}.jsonl`) ?? Buffer.alloc(0));
      for (const name of ['entities', 'messages', 'answers', 'webhooks', 'ledger', 'usage', 'audit_log'])
        expect([name, rows(name).length > 0]).toEqual([name, true]);
      expect(rows('keys')).toHaveLength(own() === live ? 2 : 1);
      expect(rows('account')).toHaveLength(own() === live ? 1 : 0);
      expect(rows('ledger').every(({ balance_after_micro: after }) => after === 0)).toBe(own() === test);
    },
    60_000,
  );
});
