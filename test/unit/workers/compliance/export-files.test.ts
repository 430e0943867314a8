import { Readable } from 'node:stream';

import { describe, expect, it } from '@jest/globals';
import { createConnection } from 'mongoose';

import { encodeEntry } from '../../../../shared/contracts/events.ts';
import type { AnswerFields } from '../../../../shared/contracts/jobs.ts';
import { createModels } from '../../../../shared/mongo/administration/catalogue.ts';
import type { ExportRows } from '../../../../shared/mongo/compliance/export-rows.ts';
import { exportFiles } from '../../../../workers/compliance/export-files.ts';

const models = createModels(createConnection());
/** The collection of each kind of rows. */
const MODELS = {
  ...models,
  failedRequests: models.requestIntents,
  usage: models.usageRollUps,
  requests: models.requestLog,
  refusals: models.refusalCounts,
};
const NOW = 1_795_255_200_000;
const END = encodeEntry(['Fine.'], { finishReason: 'stop', usage: { promptTokens: 5, completionTokens: 2 } });
const REQUEST = {
  messages: [{ role: 'user', content: 'Why?' }],
  maxTokens: 50,
  jsonMode: false,
  metadataJson: '{"lesson":7}',
  passed: { top_p: 0.5 },
};
const ENDED: AnswerFields = {
  ...{ tenant: 'ten_1', state: 'done', status: 'completed', tier: 'oloid', lastSeq: '3', billed: '1' },
  ...{ metadata: '{"lesson":7}', acceptedAt: String(NOW), startedAt: String(NOW), firstTokenAt: '' },
  finishedAt: String(NOW + 1_000),
};

/** Rows of each file, of which a field is what is said here, or 1. */
const SAMPLES = {
  tenants: {},
  accounts: {},
  keys: { previous: [{ hash: 'x', expiresAt: NOW }] },
  batches: { metadataJson: '{}' },
  webhooks: { previousSecrets: [{ encrypted: 'x', expiresAt: NOW }] },
  webhookDeliveries: { attempts: [{ at: NOW, durationMs: 1 }] },
  requests: {},
  refusals: {},
  checkouts: {},
  purchases: {},
  entities: { metadataJson: '{}', messages: [] },
  answers: { fields: ENDED, entries: [{ lastSeq: 3, payload: END }] },
  failedRequests: {
    envelopeJson: JSON.stringify({
      ...{ requestId: 'req_1', tenantId: 'ten_1', keyId: 'key_1', mode: 'live', endpoint: 'chat', tier: 'oloid' },
      ...{ stream: false, acceptedAt: NOW, retentionMs: 1, tenant: {}, request: REQUEST },
    }),
  },
  batchLines: {
    fields: ENDED,
    entries: [{ lastSeq: 3, payload: END }],
    requestJson: JSON.stringify(REQUEST),
    error: undefined,
    index: 0,
  },
  idempotency: { bodyJson: '{}' },
  webhookEvents: { bodyJson: '{}' },
  ledger: {},
  usage: {},
  audit: {},
  complianceJobs: { archive: { bytes: 1, sha256: 'x', files: [], expiresAt: NOW } },
};
type Kind = keyof typeof SAMPLES;

/** What no file has: secrets and hashes, whose the row is, and what only the service's own work needs. */
const OWN = ['tenantId', 'mode'];
const KEPT_BACK: Record<Kind, string[]> = {
  tenants: ['shard', 'move', 'closedAt', 'keysIssued', 'webhooksMade'],
  accounts: ['version', 'lastTopUp', 'lastEntryAt'],
  keys: ['hash', 'rotatedUnder', 'revision'],
  batches: ['shard', 'bytes', 'startedUnder', 'openShard', 'reopened', 'removeAt'],
  webhooks: ['encryptedSecret', 'rotatedUnder', 'failures', 'slow'],
  webhookDeliveries: ['failed', 'claim', 'claimedUntil', 'expiresAt'],
  // The provider's part is the operator's; a request's own answer says what moderation found.
  requests: ['attempts', 'model', 'moderatedAt', 'provider', 'reason', 'spend', 'verdict'],
  refusals: ['_id'],
  // What a payment's own ids say is with the payment.
  checkouts: ['sessionId', 'removeAt'],
  purchases: ['paymentId', 'disputes', 'refunds', 'refundTotal'],
  entities: ['_id', 'createdUnder', 'forgottenSeq', 'deletedAt', 'expiresAt'],
  answers: ['idempotencyName', 'fingerprint', 'expiresAt'],
  failedRequests: ['idempotencyName', 'shard', 'lookAt', 'expiresAt', 'isRedisOnly', 'takenBackKeyId', 'isGone'],
  batchLines: ['_id', 'retry', 'removeAt'],
  idempotency: ['_id', 'firstOwner', 'fingerprint', 'expiresAt'],
  webhookEvents: ['expiresAt'],
  // Which provider served it, and what that cost, is the operator's.
  ledger: ['provider', 'model', 'spend'],
  usage: ['_id', 'width', 'scope', 'expiresAt', 'provider', 'model', 'currency', 'spendNano'],
  audit: [],
  complianceJobs: ['claim', 'claimedUntil', 'sole', 'turn', 'unpublished', 'archiveGone'],
};

/** Names of a collection's fields. */
const fieldsOf = (kind: Kind) => [
  ...new Set(Object.keys(MODELS[kind].schema.paths).map((path) => path.replace(/\..*/, ''))),
];

/** The lines that come of a row, and which of its fields were looked at. */
async function exported(kind: Kind, row: object): Promise<{ lines: object[]; read: Set<string> }> {
  const read = new Set<string>();
  const watched = new Proxy(row, {
    get(target, name) {
      read.add(String(name));
      return Reflect.get(target, name) as unknown;
    },
  });
  const rowsOf = (name: string) => Readable.from(name === kind ? [watched] : []);
  const kinds = Object.fromEntries(Object.keys(SAMPLES).map((name) => [name, () => rowsOf(name)]));
  const lines: object[] = [];
  for (const file of exportFiles({ ...kinds, tenant: kinds } as unknown as ExportRows, true))
    for await (const line of file.lines()) lines.push(line);
  return { lines, read };
}

// A field that is stored from now on belongs into the export, or into the list above.
it.each(Object.keys(SAMPLES) as Kind[])(
  '%s are exported with all that is stored, but what is kept back',
  async (kind) => {
    const names = fieldsOf(kind);
    const row = { ...Object.fromEntries(names.map((name) => [name, 1])), ...SAMPLES[kind] };

    const { read } = await exported(kind, row);

    const left = names.filter((name) => !read.has(name) && !OWN.includes(name));
    expect(left.sort()).toEqual(KEPT_BACK[kind].toSorted());
  },
);

describe('a line of a batch', () => {
  it('that has ended says which model answered, when, and what its caller had it carry', async () => {
    const row = { batchId: 'batch_1', index: 0, customId: 'a', requestId: 'req_1', state: 'completed', fields: ENDED };
    const { lines } = await exported('batchLines', { ...row, entries: [{ lastSeq: 3, payload: END }] });

    expect(lines).toEqual([
      {
        ...{ batch_id: 'batch_1', index: 0, custom_id: 'a', request_id: 'req_1', state: 'completed' },
        ...{ model: 'oloid', status: 'completed', metadata: { lesson: 7 } },
        ...{ accepted_at: NOW / 1000, started_at: NOW / 1000, first_token_at: null, finished_at: NOW / 1000 + 1 },
        ...{ content: 'Fine.', finish_reason: 'stop', usage: { prompt_tokens: 5, completion_tokens: 2 }, error: null },
      },
    ]);
  });

  it('that waits has its request, named as in the API', async () => {
    const row = { batchId: 'batch_1', index: 0, customId: 'a', requestId: 'req_1', state: 'waiting' };
    const { lines } = await exported('batchLines', { ...row, requestJson: JSON.stringify(REQUEST) });

    expect(lines).toMatchObject([
      {
        request: {
          ...{ messages: REQUEST.messages, max_tokens: 50, json_mode: false, metadata: { lesson: 7 }, top_p: 0.5 },
        },
      },
    ]);
  });

  it('that was refused has its error, named as in the API', async () => {
    const error = { code: 'model_unavailable', message: 'Wait.', retryAfterSeconds: 1 };
    const { lines } = await exported('batchLines', { requestId: 'req_1', state: 'failed', error });

    const wire = { code: 'model_unavailable', message: 'Wait.', type: 'overloaded_error', request_id: 'req_1' };
    expect(lines).toEqual([{ request_id: 'req_1', state: 'failed', error: wire }]);
  });
});

it('a tenant has its ceilings and its weight, the defaults where none are stored', async () => {
  const { lines } = await exported('tenants', { _id: 'ten_1', tenantRpm: null, retentionSeconds: 0 });

  expect(lines).toMatchObject([
    { id: 'ten_1', tenant_rpm: null, tenant_tpm: 10_000_000, max_in_flight: 1_000, weight: 1, retention_seconds: 0 },
  ]);
});
