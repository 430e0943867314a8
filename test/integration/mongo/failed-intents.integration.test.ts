import { afterAll, beforeAll, expect, it } from '@jest/globals';
import type { Connection } from 'mongoose';

import type { RequestEnvelope } from '../../../shared/contracts/jobs.ts';
import { ensureIndexes } from '../../../shared/mongo/administration/catalogue.ts';
import { createFailedIntents } from '../../../shared/mongo/requests/failed-intents.ts';
import type { FailedIntents } from '../../../shared/mongo/requests/failed-intents.ts';
import { createRequestIntents } from '../../../shared/mongo/requests/request-intents.ts';
import type { RequestIntent, RequestIntents } from '../../../shared/mongo/requests/request-intents.ts';
import { newId } from '../../../shared/lifecycle/ids.ts';
import { openTestMongo, uniqueName } from '../../support/stores.ts';

const SHARD = 3;
const HOUR_MS = 3_600_000;
const SPACE = { tenantId: 'ten_1', mode: 'live' } as const;
const FAILURE = { at: 1_000, code: 'model_unavailable' } as const;

let mongo: Connection;
let intents: RequestIntents;
let failed: FailedIntents;
beforeAll(async () => {
  mongo = await openTestMongo(uniqueName('intents-'));
  await ensureIndexes(mongo);
  intents = createRequestIntents(mongo);
  failed = createFailedIntents(mongo);
});
afterAll(async () => {
  await mongo.close();
});

/** One that is kept, as the sweep reads it. */
async function open(): Promise<RequestIntent> {
  const requestId = newId('req');
  const envelope: RequestEnvelope = {
    ...{ ...SPACE, requestId, keyId: 'key_1', tier: 'mobius', endpoint: 'chat', stream: false },
    ...{ acceptedAt: Date.now(), retentionMs: 60_000, tenant: {} },
    request: { messages: [{ role: 'user', content: 'Hello' }], maxTokens: 100, jsonMode: false },
  };
  await intents.keep(SHARD, envelope, Date.now());
  const intent = await find(requestId);
  if (intent === undefined) throw new Error('The intent is gone.');
  return intent;
}

const find = (requestId: string) => intents.find(SPACE, requestId, Date.now());

/** Has it run again after its failure. */
async function replay({ requestId, envelopeJson }: RequestIntent): Promise<void> {
  const page = { after: undefined, limit: 1 };
  const [one] = await failed.list({ requestIds: [requestId] }, page, Date.now());
  if (one === undefined) throw new Error('It has not failed.');
  expect(await failed.take(one, envelopeJson, Date.now())).toBe(true);
}

it('is kept as failed, or forgotten, by whoever has seen the end of its latest run', async () => {
  const [kept, gone] = [await open(), await open()];
  for (const intent of [kept, gone]) {
    await failed.keepFailed(intent, FAILURE);
    await replay(intent);
  }
  const again = await Promise.all([kept, gone].map(({ requestId }) => find(requestId)));

  // A second one that had looked before it was run again.
  await failed.keepFailed(kept, FAILURE);
  await intents.forgetRun(gone);

  expect(again.map((intent) => intent?.replays)).toEqual([1, 1]);
  expect(await Promise.all([kept, gone].map(({ requestId }) => find(requestId)))).toEqual(again);
  if (again[0] !== undefined) await failed.keepFailed(again[0], FAILURE);
  if (again[1] !== undefined) await intents.forgetRun(again[1]);
  expect(await Promise.all([kept, gone].map(({ requestId }) => find(requestId)))).toEqual([undefined, undefined]);
  expect(await failed.count({ requestIds: [kept.requestId, gone.requestId] }, Date.now())).toBe(1);
});

it('is not looked after again once it has failed', async () => {
  const intent = await open();
  await failed.keepFailed(intent, FAILURE);

  // Whoever does so has seen it run.
  await intents.postpone([intent.requestId], Date.now());

  const due = await intents.due(SHARD, Date.now() + HOUR_MS, 100);
  expect(due.map(({ requestId }) => requestId)).not.toContain(intent.requestId);
});
