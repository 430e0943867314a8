import { Readable } from 'node:stream';

import { describe, expect, it } from '@jest/globals';

import { encodeEntry } from '../../../../shared/contracts/events.ts';
import type { AnswerFields } from '../../../../shared/contracts/jobs.ts';
import type { ExportRows } from '../../../../shared/mongo/compliance/export-rows.ts';
import { exportFiles } from '../../../../workers/compliance/export-files.ts';

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
const ENVELOPE = {
  ...{ requestId: 'req_1', tenantId: 'ten_1', keyId: 'key_1', mode: 'live', endpoint: 'chat', tier: 'oloid' },
  ...{ stream: false, acceptedAt: NOW, retentionMs: 1, tenant: {}, request: REQUEST },
};

type Files = Omit<ExportRows, 'tenant'> & ExportRows['tenant'];
type Kind = keyof Files;
type FieldOf<Rows> = Rows extends () => AsyncIterable<infer Row> ? keyof Row : never;

/**
 * Rows of each file with every field that their type has. What no file has is 0: secrets and hashes, whose the row is, and
 * what only the service's own work needs.
 */
const ROWS: { [Name in Kind]: { [Field in FieldOf<Files[Name]>]: unknown } } = {
  tenants: {
    ...{ status: 1, createdAt: 1, name: 1, defaultModel: 1, rpm: 1, tpm: 1, dailyRequests: 1, chatRpm: 1 },
    ...{ streamRpm: 1, tenantRpm: 1, tenantTpm: 1, maxInFlight: 1, weight: 1, monthlyTokenBudget: 1 },
    ...{ testDailyTokens: 1, onDisconnect: 1, moderation: 1, subject: 1, grade: 1, retentionSeconds: 1, _id: 1 },
    ...{ closedAt: 0, move: 0, keysIssued: 0, webhooksMade: 0, shard: 0 },
  },
  accounts: { _id: 1, balanceMicro: 1, tokensByMonth: 1, version: 0, lastTopUp: 0, lastEntryAt: 0 },
  keys: {
    ...{ _id: 1, previous: [{ hash: 'x', expiresAt: NOW }], redactedValue: 1, name: 1, scopes: 1, status: 1 },
    ...{ expiresAt: 1, rpm: 1, tpm: 1, dailyRequests: 1, createdAt: 1, lastUsedAt: 1, tenantId: 0, hash: 0 },
    ...{ rotatedUnder: 0, mode: 1, revision: 0 },
  },
  batches: {
    ...{ _id: 1, keyId: 1, status: 1, metadataJson: '{}', total: 1, completed: 1, failed: 1, waitingFor: 1 },
    ...{ createdAt: 1, expiresAt: 1, startedAt: 1, cancelledAt: 1, endedAt: 1, tenantId: 0, shard: 0, mode: 1 },
    ...{ bytes: 0, startedUnder: 0, openShard: 0, reopened: 0, removeAt: 0 },
  },
  webhooks: {
    ...{ _id: 1, url: 1, events: 1, description: 1, status: 1, disabledReason: 1 },
    ...{ previousSecrets: [{ encrypted: 'x', expiresAt: NOW }], failingSince: 1, createdAt: 1, encryptedSecret: 0 },
    ...{ rotatedUnder: 0, failures: 0, slow: 0, tenantId: 0, mode: 0 },
  },
  webhookDeliveries: {
    ...{ _id: 1, webhookId: 1, eventId: 1, type: 1, status: 1, attempts: [{ at: NOW, durationMs: 1 }] },
    ...{ nextAttemptAt: 1, createdAt: 1, failed: 0, claim: 0, claimedUntil: 0, expiresAt: 0, tenantId: 0, mode: 0 },
  },
  // The provider's part is the operator's; a request's own answer says what moderation found.
  requests: {
    ...{ _id: 1, keyId: 1, endpoint: 1, status: 1, createdAt: 1, code: 1, tier: 1, startedAt: 1, firstTokenAt: 1 },
    ...{ finishedAt: 1, finishReason: 1, promptTokens: 1, completionTokens: 1, estimated: 1, costMicro: 1, reason: 0 },
    ...{ moderatedAt: 0, verdict: 0, attempts: 0, provider: 0, model: 0, spend: 0, tenantId: 0, mode: 1 },
  },
  refusals: { keyId: 1, code: 1, createdAt: 1, count: 1, _id: 0, tenantId: 0, mode: 1 },
  // What a payment's own ids say is with the payment.
  checkouts: {
    ...{ _id: 1, keyId: 1, status: 1, payment: 1, url: 1, successUrl: 1, cancelUrl: 1, createdAt: 1, expiresAt: 1 },
    ...{ packageId: 1, creditsMicro: 1, amount: 1, currency: 1, tenantId: 0, sessionId: 0, removeAt: 0 },
  },
  purchases: {
    ...{ _id: 1, checkoutId: 1, transactionId: 1, payment: 1, refundedAmount: 1, refundedMicro: 1, disputedMicro: 1 },
    ...{ createdAt: 1, packageId: 1, creditsMicro: 1, amount: 1, currency: 1, tenantId: 0, paymentId: 0 },
    ...{ refundTotal: 0, refunds: 0, disputes: 0 },
  },
  entities: {
    ...{ entityId: 1, subject: 1, grade: 1, name: 1, metadataJson: '{}', messages: [], createdAt: 1, createdUnder: 0 },
    ...{ forgottenSeq: 0, deletedAt: 0, expiresAt: 0, tenantId: 0, mode: 0 },
  },
  answers: {
    ...{ _id: 1, entityId: 1, fields: ENDED, entries: [{ lastSeq: 3, payload: END }], idempotencyName: 0 },
    ...{ fingerprint: 0, expiresAt: 0, tenantId: 0, mode: 0 },
  },
  failedRequests: {
    ...{ _id: 1, entityId: 1, envelopeJson: JSON.stringify(ENVELOPE), acceptedAt: 1, failedAt: 1, failedCode: 1 },
    ...{ replays: 1, idempotencyName: 0, shard: 0, lookAt: 0, isRedisOnly: 0, takenBackKeyId: 0, isGone: 0 },
    ...{ expiresAt: 0, tenantId: 0, mode: 0 },
  },
  batchLines: {
    ...{ batchId: 1, index: 1, customId: 1, requestId: 1, entityId: 1, state: 1, requestJson: JSON.stringify(REQUEST) },
    ...{ error: undefined, fields: ENDED, entries: [{ lastSeq: 3, payload: END }], failedAt: 1, failedCode: 1, _id: 0 },
    ...{ retry: 0, removeAt: 0, tenantId: 0, mode: 0 },
  },
  idempotency: {
    ...{ owner: 1, claimedAt: 1, status: 1, bodyJson: '{}', location: 1, entityId: 1, _id: 0, firstOwner: 0 },
    ...{ fingerprint: 0, expiresAt: 0, tenantId: 0, mode: 0 },
  },
  webhookEvents: { _id: 1, type: 1, bodyJson: '{}', entityId: 1, createdAt: 1, expiresAt: 0, tenantId: 0, mode: 0 },
  // Which provider served it, and what that cost, is the operator's.
  ledger: {
    ...{ _id: 1, type: 1, amountMicro: 1, balanceAfterMicro: 1, createdAt: 1, reason: 1, purchaseId: 1, requestId: 1 },
    ...{ keyId: 1, endpoint: 1, tier: 1, entityId: 1, promptTokens: 1, completionTokens: 1, estimated: 1 },
    ...{ finishReason: 1, acceptedAt: 1, refunded: 1, cachedTokens: 1, cacheWriteTokens: 1, promptAudioTokens: 1 },
    ...{ reasoningTokens: 1, completionAudioTokens: 1, tenantId: 0, mode: 1, provider: 0, model: 0, spend: 0 },
  },
  usage: {
    ...{ startMs: 1, keyId: 1, tier: 1, endpoint: 1, entityId: 1, promptTokens: 1, completionTokens: 1, requests: 1 },
    ...{ costMicro: 1, estimatedRequests: 1, cachedTokens: 1, cacheWriteTokens: 1, promptAudioTokens: 1 },
    ...{ reasoningTokens: 1, completionAudioTokens: 1, _id: 0, expiresAt: 0, tenantId: 0, width: 0, mode: 1 },
    ...{ provider: 0, model: 0, currency: 0, scope: 0, spendNano: 0 },
  },
  audit: { _id: 1, createdAt: 1, actor: 1, action: 1, target: 1, requestId: 1, details: 1, tenantId: 0, mode: 0 },
  complianceJobs: {
    ...{ _id: 1, kind: 1, scope: 1, entityId: 1, entityHash: 1, status: 1, createdAt: 1, completedAt: 1, error: 1 },
    ...{ archive: { bytes: 1, sha256: 'x', files: [], expiresAt: NOW }, reason: 1, report: 1, claim: 0 },
    ...{ claimedUntil: 0, sole: 0, turn: 0, unpublished: 0, archiveGone: 0, tenantId: 0, mode: 0 },
  },
};

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
  const kinds = Object.fromEntries(Object.keys(ROWS).map((name) => [name, () => rowsOf(name)]));
  const lines: object[] = [];
  for (const file of exportFiles({ ...kinds, tenant: kinds } as unknown as ExportRows, true))
    for await (const line of file.lines()) lines.push(line);
  return { lines, read };
}

// A field that is stored from now on belongs into the export, or is kept back above.
it.each(Object.keys(ROWS) as Kind[])('%s are exported with all that is stored, but what is kept back', async (kind) => {
  const row = ROWS[kind];
  const { read } = await exported(kind, row);

  const keptBack = Object.entries(row).flatMap(([name, value]) => (value === 0 ? [name] : []));
  expect(Object.keys(row).filter((name) => !read.has(name))).toEqual(keptBack);
});

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
