import { expect, it } from '@jest/globals';

import { createPseudonyms } from '../../../../shared/domain/pseudonyms.ts';
import { parseSettlement } from '../../../../shared/contracts/settlement.ts';
import { createEraseRequests } from '../../../../workers/compliance/erase-requests.ts';

const TENANT = 'ten_aaaaaaaaaaaaaaaaaaaaaaaa';
const pseudonyms = createPseudonyms(Buffer.alloc(32, 7));

const record = (entityId: string | undefined, tenantId = TENANT) =>
  JSON.stringify({
    ...{ requestId: 'req_aaaaaaaaaaaaaaaaaaaaaaaa', tenantId, keyId: 'key_aaaaaaaaaaaaaaaaaaaaaaaa', entityId },
    ...{ mode: 'live', tier: 'mobius', endpoint: 'chat', provider: 'simulated', model: 'sim', finishReason: 'stop' },
    ...{ promptTokens: 1, completionTokens: 1, estimated: false, costMicro: 2, acceptedAt: 1, finishedAt: 2 },
  });

/** The texts as they stand after the deletion of an entity, or of all. */
async function afterDeletion(texts: readonly string[], entityId?: string): Promise<string[]> {
  let left: string[] = [];
  const requests = createEraseRequests({
    traces: {} as never,
    outbox: {
      find: () => Promise.resolve(undefined),
      rewriteDeadLetters: (_shard, rewrite) => {
        left = texts.map((raw) => rewrite(raw) ?? raw);
        return Promise.resolve(0);
      },
    },
    records: {} as never,
    known: {} as never,
    removeJob: () => Promise.resolve(),
    pseudonyms,
  });
  const hands = { signal: new AbortController().signal, hold: () => Promise.resolve() };
  await requests.settled({ tenantId: TENANT, mode: 'any', shard: 0, entityId }, 10_000, hands);
  return left;
}

it.each(['chat', 'live', 'requestId', 'stop', 'mobius', 'costMicro', 'a "b" \\c'])(
  'a dead letter can be booked after the deletion of an entity called %s',
  async (entity) => {
    const texts = [record(entity), record('another'), record(undefined), record(entity, 'ten_b')];
    const [own, ...others] = await afterDeletion(texts, entity);
    expect(parseSettlement(own ?? '')).toEqual({
      ...parseSettlement(record(entity)),
      entityId: pseudonyms.of(TENANT, entity),
    });
    expect(others).toEqual(texts.slice(1));
  },
);

it('a text that is no record loses its entities, too, and is left alone otherwise', async () => {
  const broken = `{"tenantId":"${TENANT}", "entityId" : "pupil", "entityId":"\\x", {`;
  const [text] = await afterDeletion([broken]);
  expect(text).toBe(broken.replace('pupil', pseudonyms.of(TENANT, 'pupil')));
  expect(await afterDeletion([text ?? ''])).toEqual([text]);
});
