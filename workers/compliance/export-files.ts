import { CHAT_FIELDS } from '../../shared/contracts/chat-request.ts';
import type { ChatRequest } from '../../shared/contracts/chat-request.ts';
import { KIND_NAMES, decodeEntry, mergeAnswer } from '../../shared/contracts/events.ts';
import { parseEnvelope } from '../../shared/contracts/jobs.ts';
import type { EndedAnswer } from '../../shared/contracts/jobs.ts';
import { TENANT_FIELDS, tenantSettingsOf } from '../../shared/contracts/tenant-fields.ts';
import { timeOfSeq } from '../../shared/domain/request-times.ts';
import { toErrorObject } from '../../shared/errors/error-body.ts';
import type { ExportRows } from '../../shared/mongo/compliance/export-rows.ts';
import type { AnswerRow } from '../../shared/mongo/requests/answer-repository.ts';
import type { RequestIntentRow } from '../../shared/mongo/requests/request-intents.ts';
import type { EntityRow } from '../../shared/mongo/entities/entity-repository.ts';
import type { BatchLineRow } from '../../shared/mongo/batches/batch-lines.ts';

/** One file of an export: its name without the ending, and its lines as objects. */
export interface ExportFile {
  name: string;
  lines(): AsyncIterable<object>;
}

const seconds = (ms: number) => Math.floor(ms / 1000);

/** Writes a field as the API does: `createdAt` → `created_at` in Unix seconds, `metadataJson` → `metadata` as what it says. */
function field(name: string, value: unknown): [string, unknown] {
  const snake = name === '_id' ? 'id' : name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
  if (typeof value === 'string' && snake.endsWith('_json')) return [snake.slice(0, -5), JSON.parse(value) as unknown];
  return [snake, typeof value === 'number' && snake.endsWith('_at') ? seconds(value) : value];
}

/** Takes the named fields and no other: a secret is never named. */
function only<Row extends object>(row: Row, names: readonly (keyof Row & string)[]): object {
  const present = names.filter((name) => row[name] !== undefined);
  return Object.fromEntries(present.map((name) => field(name, row[name])));
}

/** The last of earlier values ceases to hold then; absent: there is none. */
function endOfPrevious(name: string, previous: readonly { expiresAt: number }[] = []): object {
  return previous.length === 0 ? {} : { [name]: seconds(Math.max(...previous.map(({ expiresAt }) => expiresAt))) };
}

/** The caller's own form. */
function requestOf({ messages, passed, schema, ...request }: ChatRequest): object {
  return {
    messages: messages.map(({ sent, ...message }) => sent ?? message),
    ...only(request, [...CHAT_FIELDS.flatMap(([name]) => (name === 'messages' ? [] : name)), 'task']),
    ...passed,
    ...(schema && { response_format: { type: 'json_schema', json_schema: schema } }),
  };
}

/** Writes an ended request's record. A field that a record does not have is empty text. */
function recordOf({ tier: model, status, metadata = '', ...times }: EndedAnswer['fields']): object {
  const at = (name: keyof typeof times) => {
    const { [name]: time = '' } = times;
    return time === '' ? null : seconds(Number(time));
  };
  return {
    model,
    status,
    accepted_at: at('acceptedAt'),
    started_at: at('startedAt'),
    first_token_at: at('firstTokenAt'),
    finished_at: at('finishedAt'),
    metadata: metadata === '' ? null : (JSON.parse(metadata) as object),
  };
}

function contentOf(requestId: string, entries: EndedAnswer['entries']): object {
  const decoded = entries.map(({ lastSeq, payload }) => decodeEntry(lastSeq, payload));
  const { message } = mergeAnswer(decoded.flatMap(({ deltas }) => deltas));
  const { finishReason = null, usage = null, error } = decoded.at(-1)?.terminal ?? {};
  const failure = error === undefined ? null : toErrorObject(error, requestId);
  const counts = usage === null ? null : only(usage, ['promptTokens', 'completionTokens', ...KIND_NAMES]);
  return { ...message, finish_reason: finishReason, usage: counts, error: failure };
}

function answerLine({ _id, entityId, fields, entries }: AnswerRow): object {
  return { request_id: _id, entity_id: entityId ?? null, ...recordOf(fields), ...contentOf(_id, entries) };
}

/** Of what failed in an outage and may be run again. */
function failureOf({ failedAt, failedCode }: Pick<RequestIntentRow, 'failedAt' | 'failedCode'>): object {
  return failedAt === undefined ? {} : { failed_at: seconds(failedAt), error_code: failedCode };
}

function failedLine(row: RequestIntentRow): object {
  const { _id, entityId, acceptedAt, replays = 0 } = row;
  const { tier: model, keyId, endpoint, request } = parseEnvelope(row.envelopeJson);
  return {
    request_id: _id,
    entity_id: entityId ?? null,
    key_id: keyId,
    endpoint,
    model,
    accepted_at: seconds(acceptedAt),
    ...failureOf(row),
    replays,
    ...requestOf(request),
  };
}

function batchLine(row: BatchLineRow): object {
  const { requestId, requestJson, fields, entries, error } = row;
  return {
    ...only(row, ['batchId', 'index', 'customId', 'requestId', 'entityId', 'state']),
    // Written by this service as a ChatRequest.
    ...(requestJson === undefined ? {} : { request: requestOf(JSON.parse(requestJson) as ChatRequest) }),
    ...(fields === undefined ? {} : recordOf(fields)),
    ...(entries === undefined ? {} : contentOf(requestId, entries)),
    ...(error === undefined ? {} : { error: toErrorObject(error, requestId) }),
    ...failureOf(row),
  };
}

function messageLines({ entityId, messages }: EntityRow): object[] {
  return messages.map(({ role, content, requestId, seq }) => ({
    entity_id: entityId,
    role,
    content,
    request_id: requestId,
    created_at: seconds(timeOfSeq(seq)),
  }));
}

async function* each<Row>(rows: AsyncIterable<Row>, toLines: (row: Row) => object | object[]): AsyncGenerator<object> {
  for await (const row of rows) yield* [toLines(row)].flat();
}

function file<Row>(name: string, rows: () => AsyncIterable<Row>, toLines: (row: Row) => object | object[]): ExportFile {
  return { name, lines: () => each(rows(), toLines) };
}

const order = ['packageId', 'creditsMicro', 'amount', 'currency', 'payment', 'createdAt'] as const;

/** The attempts and their costs are the operator's. */
const REQUEST_FIELDS = [
  ...(['_id', 'keyId', 'mode', 'endpoint', 'tier', 'status', 'code', 'finishReason'] as const),
  ...(['createdAt', 'startedAt', 'firstTokenAt', 'finishedAt'] as const),
  ...(['promptTokens', 'completionTokens', 'estimated', 'costMicro'] as const),
];

const KEY_FIELDS = ['_id', 'name', 'redactedValue', 'mode', 'scopes', 'status', 'expiresAt'] as const;

const JOB_FIELDS = ['_id', 'kind', 'scope', 'entityId', 'entityHash', 'status', 'reason'] as const;

const BATCH_FIELDS = [
  ...(['_id', 'keyId', 'mode', 'status', 'waitingFor', 'metadataJson'] as const),
  ...(['total', 'completed', 'failed'] as const),
  ...(['createdAt', 'startedAt', 'cancelledAt', 'endedAt', 'expiresAt'] as const),
];

const LEDGER_FIELDS = [
  ...(['_id', 'type', 'amountMicro', 'balanceAfterMicro', 'createdAt', 'reason', 'purchaseId'] as const),
  ...(['requestId', 'keyId', 'mode', 'endpoint', 'tier', 'entityId', 'refunded'] as const),
  ...(['promptTokens', 'completionTokens', ...KIND_NAMES, 'estimated', 'finishReason', 'acceptedAt'] as const),
];

function tenantFiles({ tenant }: ExportRows): ExportFile[] {
  return [
    file('tenant', tenant.tenants, (row) => ({
      ...only(row, ['_id', 'status', 'createdAt']),
      ...only(
        tenantSettingsOf(row),
        TENANT_FIELDS.map(([name]) => name),
      ),
    })),
    file('account', tenant.accounts, (row) => only(row, ['_id', 'balanceMicro', 'tokensByMonth'])),
    file('keys', tenant.keys, (row) => ({
      ...only(row, [...KEY_FIELDS, 'rpm', 'tpm', 'dailyRequests', 'createdAt', 'lastUsedAt']),
      ...endOfPrevious('previous_value_expires_at', row.previous),
    })),
    file('batches', tenant.batches, (row) => only(row, BATCH_FIELDS)),
    file('webhooks', tenant.webhooks, (row) => ({
      ...only(row, ['_id', 'url', 'events', 'description', 'status', 'disabledReason', 'failingSince', 'createdAt']),
      ...endOfPrevious('previous_secret_expires_at', row.previousSecrets),
    })),
    file('webhook_deliveries', tenant.webhookDeliveries, (row) => ({
      ...only(row, ['_id', 'webhookId', 'eventId', 'type', 'status', 'nextAttemptAt', 'createdAt']),
      attempts: row.attempts.map(({ at: createdAt, ...attempt }) =>
        only({ createdAt, ...attempt }, ['createdAt', 'durationMs', 'status', 'error']),
      ),
    })),
    file('requests', tenant.requests, (row) => only(row, REQUEST_FIELDS)),
    file('refusals', tenant.refusals, (row) => only(row, ['keyId', 'mode', 'code', 'createdAt', 'count'])),
    file('checkouts', tenant.checkouts, (row) =>
      only(row, ['_id', 'keyId', 'status', 'url', 'successUrl', 'cancelUrl', ...order, 'expiresAt']),
    ),
    file('purchases', tenant.purchases, (row) =>
      only(row, ['_id', 'checkoutId', 'transactionId', 'refundedAmount', 'refundedMicro', 'disputedMicro', ...order]),
    ),
  ];
}

const COUNTS = [
  'requests',
  'promptTokens',
  'completionTokens',
  ...KIND_NAMES,
  'costMicro',
  'estimatedRequests',
] as const;

/** Every file that an export may have; `whole`: of the tenant, not of one entity. */
export function exportFiles(rows: ExportRows, whole: boolean): ExportFile[] {
  return [
    ...(whole ? tenantFiles(rows) : []),
    file('entities', rows.entities, (row) =>
      only(row, ['entityId', 'subject', 'grade', 'name', 'metadataJson', 'createdAt']),
    ),
    file('messages', rows.entities, messageLines),
    file('answers', rows.answers, answerLine),
    file('failed_requests', rows.failedRequests, failedLine),
    file('batch_lines', rows.batchLines, batchLine),
    file('idempotency_records', rows.idempotency, (row) => ({
      request_id: row.owner,
      ...only(row, ['status', 'bodyJson', 'location', 'entityId', 'claimedAt']),
    })),
    file('webhook_events', rows.webhookEvents, (row) =>
      only(row, ['_id', 'type', 'entityId', 'bodyJson', 'createdAt']),
    ),
    // The balance after an entry is the live one.
    file('ledger', rows.ledger, (row) =>
      only(row.mode === 'test' ? { ...row, balanceAfterMicro: 0 } : row, LEDGER_FIELDS),
    ),
    file('usage', rows.usage, (row) => ({
      start_time: seconds(row.startMs),
      ...only(row, ['keyId', 'tier', 'mode', 'endpoint', 'entityId', ...COUNTS]),
    })),
    file('audit_log', rows.audit, (row) =>
      only(row, ['_id', 'actor', 'action', 'target', 'requestId', 'details', 'createdAt']),
    ),
    file('compliance_jobs', rows.complianceJobs, (row) => ({
      ...only(row, [...JOB_FIELDS, 'report', 'error', 'createdAt', 'completedAt']),
      ...(row.archive === undefined ? {} : only(row.archive, ['expiresAt', 'bytes', 'sha256', 'files'])),
    })),
  ];
}
