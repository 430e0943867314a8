import { TIERS } from './chat-request.ts';
import type { ChatRequest, Tier } from './chat-request.ts';
import type { FinishReason, TokenKinds } from './events.ts';
import { isRecord } from './parse.ts';
import { KEY_MODES } from './space.ts';
import type { ModerationSettings, KeyMode } from './space.ts';
import type { ErrorCode } from '../errors/codes.ts';

/** A request's throttle, queue and row in the ledger follow from its route. */
export const CHAT_ROUTES = ['chat', 'chat.stream', 'batch', 'embeddings', 'moderations'] as const;
export type ChatRoute = (typeof CHAT_ROUTES)[number];

/** `name` is that of a key and its body; see api/http/request-terms.ts. */
export interface IdempotencyName {
  name: string;
  fingerprint: string;
}

/**
 * Redis keeps it until the request ends. Its copy of the tenant's settings, as they were at acceptance, spares a
 * request without `entity_id` a read of MongoDB.
 */
export interface RequestEnvelope {
  requestId: string;
  tenantId: string;
  keyId: string;
  mode: KeyMode;
  endpoint: ChatRoute;
  tier: Tier;
  /** The provider is asked for a stream only if the caller reads one. */
  stream: boolean;
  /** Milliseconds since the epoch. */
  acceptedAt: number;
  /** Run again after a failure: its duration counts from then. */
  replayedAt?: number;
  /** Redis keeps the answer this long after the end; milliseconds. 0: no text of the conversation is kept anywhere. */
  retentionMs: number;
  /**
   * Present for asynchronous and keyed requests, and if the tenant keeps answers longer than Redis: the request can be
   * admitted again, and its answer is stored. Stored envelopes fix this name.
   */
  kept?: AnswerStorage & { idempotency?: IdempotencyName };
  /** For a request of which only the fact that it ran is kept. */
  idempotency?: IdempotencyName;
  /** At acceptance; they still hold if the request is admitted again. Absent if it cannot be. */
  rates?: { promptMicro: number; completionMicro: number; kinds?: TokenKinds };
  tenant: { subject?: string; grade?: string; moderation?: ModerationSettings };
  request: ChatRequest;
  /** Parent of the worker's spans (W3C Trace Context). Absent if the ingress traces nothing. */
  traceparent?: string;
}

/** Apart from the stream in Redis that every answer leaves. */
export interface AnswerStorage {
  /** MongoDB's copy; milliseconds. Absent: a day. */
  storedMs?: number;
  /** MongoDB keeps no copy; Redis has the stream, and notes for a day that the request has ended. */
  redisOnly?: true;
}

/** Ids only: people watch the queues (docs/spec.md#retention). */
export interface ChatJob {
  tenantId: string;
}

/** A kept job shows these to operators: no text of a tenant's, and no entity. */
export interface JobFacts extends ChatJob {
  tier: Tier;
  endpoint: ChatRoute;
  finishReason: FinishReason;
  /** '' if no provider was called. */
  provider: string;
  model: string;
  /** In the waiting queue. */
  waitedMs: number;
  tookMs: number;
  promptTokens: number;
  completionTokens: number;
  errorCode?: ErrorCode;
}

export interface WebhookJob {
  tenantId: string;
  webhookId: string;
}

export interface ComplianceJob {
  tenantId: string;
  jobId: string;
}

/** Ids only. A job may be older or newer than the code that reads it, which ignores others. */
type PayloadFields<Payload> = readonly (keyof Payload & string)[];

const payload = <Payload>(...ids: PayloadFields<Payload>): PayloadFields<Payload> => ids;

interface JobDefinition {
  job: string;
  payload: readonly string[];
  attempts: number;
  removeOnComplete: boolean;
  removeOnFail: boolean | { count: number; age: number };
}

/** Failed jobs are kept for people to look at. */
const FAILED_KEPT = { count: 1_000, age: 86_400 } as const;

const CHAT = {
  job: 'chat',
  payload: payload<ChatJob>('tenantId'),
  /** Retries are the pipeline's own, inside one delivery. */
  attempts: 1,
  /** Keeping a job adds a third to its cost, so a worker keeps only a sample (workers/queue/job-history.ts). */
  removeOnComplete: true,
  removeOnFail: FAILED_KEPT,
} as const;

/** The work is in MongoDB and a job only announces it, so a failed job gives way to the next. */
const NOTICE = { attempts: 1, removeOnComplete: true, removeOnFail: FAILED_KEPT } as const;
const DELIVERY = { job: 'deliver', payload: payload<WebhookJob>('tenantId', 'webhookId'), ...NOTICE } as const;

/** Processors: inference.ts and durable-work.ts in workers/queue. */
export const JOBS = {
  interactive: CHAT,
  /** Lines of batches: nobody waits for them, so they yield. */
  batch: CHAT,
  webhooks: DELIVERY,
  /** Slow or failing receivers stay apart, so that the others need not wait. */
  'webhooks-slow': DELIVERY,
  compliance: { job: 'run', payload: payload<ComplianceJob>('tenantId', 'jobId'), ...NOTICE },
} as const satisfies Record<string, JobDefinition>;

export type JobQueueName = keyof typeof JOBS;

export type JobPayload<Name extends JobQueueName> = Record<(typeof JOBS)[Name]['payload'][number], string>;

/** Throws if a field is missing. */
export function parseJob<Name extends JobQueueName>(name: Name, data: unknown): JobPayload<Name> {
  const missing = JOBS[name].payload.find((id) => !isRecord(data) || typeof data[id] !== 'string' || data[id] === '');
  if (missing !== undefined) throw new Error(`A job of the queue ${name} cannot be read: it has no ${missing}`);
  // It has just been checked.
  return data as JobPayload<Name>;
}

export const QUEUE_NAMES = ['interactive', 'batch'] as const satisfies readonly JobQueueName[];
export type QueueName = (typeof QUEUE_NAMES)[number];

export const WEBHOOK_QUEUE_NAMES = ['webhooks', 'webhooks-slow'] as const satisfies readonly JobQueueName[];
export type WebhookQueueName = (typeof WEBHOOK_QUEUE_NAMES)[number];

export function queueOf(endpoint: ChatRoute): QueueName {
  return endpoint === 'batch' ? 'batch' : 'interactive';
}

/** Stored data has another shape than this code reads. */
export class UnreadableError extends Error {
  override readonly name = 'UnreadableError';
}

const TIER_NAMES: ReadonlySet<unknown> = new Set(TIERS);
const MODE_NAMES: ReadonlySet<unknown> = new Set(KEY_MODES);

/** Checks only for undamaged data: limits and other fields were checked before. Newer code may store more. */
function isRequest(value: unknown): boolean {
  if (!isRecord(value) || !Array.isArray(value['messages']) || typeof value['maxTokens'] !== 'number') return false;
  return value['messages'].every((message) => isRecord(message) && typeof message['content'] === 'string');
}

function isEnvelope(value: unknown): boolean {
  return (
    isRecord(value) &&
    typeof value['requestId'] === 'string' &&
    typeof value['tenantId'] === 'string' &&
    typeof value['keyId'] === 'string' &&
    MODE_NAMES.has(value['mode']) &&
    TIER_NAMES.has(value['tier']) &&
    typeof value['acceptedAt'] === 'number' &&
    typeof value['retentionMs'] === 'number' &&
    isRecord(value['tenant']) &&
    isRequest(value['request'])
  );
}

/** Errors show nothing of the stored text: it is the caller's. */
function read(json: string, what: string, isReadable: (value: unknown) => boolean): unknown {
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch {
    throw new UnreadableError(`${what} is not JSON.`);
  }
  if (!isReadable(value)) throw new UnreadableError(`${what} is not as this version stores it.`);
  return value;
}

/** Undefined: the request named no model, or its tier. */
export function nameOf({ tier, request: { model } }: { tier: string; request: ChatRequest }): string | undefined {
  return model === tier ? undefined : model;
}

/** Throws an UnreadableError. */
export function parseEnvelope(json: string): RequestEnvelope {
  // The service has written it.
  return read(json, 'The body of the request', isEnvelope) as RequestEnvelope;
}

/** Throws an UnreadableError. */
export function parseStoredRequest(json: string): ChatRequest {
  // The service has written it.
  return read(json, 'The line', isRequest) as ChatRequest;
}

/** Readers of an ended request need these fields of its record. */
export const ANSWER_FIELDS = [
  'tenant',
  'billed',
  'state',
  'status',
  'tier',
  'model',
  'metadata',
  'lastSeq',
  'acceptedAt',
  'startedAt',
  'firstTokenAt',
  'finishedAt',
] as const;

/** A missing field is empty text, or absent. */
export type AnswerFields = Partial<Record<(typeof ANSWER_FIELDS)[number], string>>;

/** An ended request as Redis has it; once restored, it reads the same, byte for byte. */
export interface EndedAnswer {
  requestId: string;
  tenantId: string;
  fields: AnswerFields;
  /** Last sequence number and payload of each entry, in order (shared/contracts/events.ts). */
  entries: { lastSeq: number; payload: string }[];
}

/** May be asked for again for a day (docs/spec.md#retention). */
export interface StoredAnswer extends EndedAnswer {
  mode: KeyMode;
  entityId?: string;
  /** Undefined: the request was asynchronous, or its key does not remember an end without an answer. */
  idempotency?: IdempotencyName;
  /** Milliseconds since the epoch. */
  expiresAt: number;
}

/** For answers with an Idempotency-Key and asynchronous ones (docs/spec.md#retention). */
export const STORED_ANSWER_MS = 24 * 3_600_000;

/** The answer stands for its Idempotency-Key until then, however long it is kept. Milliseconds since the epoch. */
export function namedUntil({ fields }: EndedAnswer): number {
  return Number(fields['acceptedAt']) + STORED_ANSWER_MS;
}
