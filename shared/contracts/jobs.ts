import { TIERS } from './chat-request.ts';
import type { ChatRequest, Tier } from './chat-request.ts';
import type { FinishReason, TokenKinds } from './events.ts';
import { isRecord } from './parse.ts';
import { KEY_MODES } from './space.ts';
import type { ModerationSettings, KeyMode } from './space.ts';
import type { ErrorCode } from '../errors/codes.ts';

/** Which public route a request came through; its throttle, its queue and its row in the ledger follow from it. */
export const CHAT_ROUTES = ['chat', 'chat.stream', 'batch', 'embeddings', 'moderations'] as const;
export type ChatRoute = (typeof CHAT_ROUTES)[number];

/** The name of an Idempotency-Key and of the body it came with; see api/http/request-terms.ts. */
export interface IdempotencyName {
  name: string;
  fingerprint: string;
}

/**
 * The worker's part of a request besides its record, kept in Redis until the request ends. It carries the tenant's
 * settings as they were at acceptance, so a request without `entity_id` needs no MongoDB.
 */
export interface RequestEnvelope {
  requestId: string;
  tenantId: string;
  keyId: string;
  mode: KeyMode;
  endpoint: ChatRoute;
  tier: Tier;
  /** The caller reads the answer as a stream, so the provider is asked for one. */
  stream: boolean;
  /** Milliseconds since the epoch. */
  acceptedAt: number;
  /** When it was run again after a failure; its duration counts from then. */
  replayedAt?: number;
  /** How long Redis keeps the answer after the end; milliseconds. 0: nothing of the conversation is kept anywhere. */
  retentionMs: number;
  /**
   * Present for asynchronous and keyed requests, and if the tenant keeps answers longer than Redis does: the request can
   * be admitted again, and its answer is stored. The field keeps this name because stored envelopes have it.
   */
  kept?: AnswerStorage & { idempotency?: IdempotencyName };
  /** For a request of which nothing is kept except that it ran. */
  idempotency?: IdempotencyName;
  /** The prices at acceptance, which still hold if the request is admitted again. Absent if it cannot be. */
  rates?: { promptMicro: number; completionMicro: number; kinds?: TokenKinds };
  tenant: { subject?: string; grade?: string; moderation?: ModerationSettings };
  request: ChatRequest;
  /** The parent of the worker's spans (W3C Trace Context). Absent if the ingress traces nothing. */
  traceparent?: string;
}

/** How an answer is stored, apart from the stream in Redis that every answer leaves. */
export interface AnswerStorage {
  /** How long MongoDB keeps it; milliseconds. Absent: a day. */
  storedMs?: number;
  /** MongoDB keeps no copy: the stream in Redis is all there is, and Redis notes for a day that the request has ended. */
  redisOnly?: true;
}

/** Payloads are ids only: queues are watched by people (docs/spec.md#retention). */
export interface ChatJob {
  tenantId: string;
}

/** The facts of its request that a kept job shows: for operators, so nothing that a tenant wrote and no entity. */
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

/** Webhook deliveries are due for this webhook. */
export interface WebhookJob {
  tenantId: string;
  webhookId: string;
}

/** An export or a deletion has something to do. */
export interface ComplianceJob {
  tenantId: string;
  jobId: string;
}

/** The fields of a payload, all of them ids. A job may be older or newer than the code that reads it: others are ignored. */
type PayloadFields<Payload> = readonly (keyof Payload & string)[];

const payload = <Payload>(...ids: PayloadFields<Payload>): PayloadFields<Payload> => ids;

/** A job's name in BullMQ, its payload, how often BullMQ runs it and how long BullMQ keeps it. */
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

/** The work itself is in MongoDB and a job only announces it, so a failed job gives way to the next. */
const NOTICE = { attempts: 1, removeOnComplete: true, removeOnFail: FAILED_KEPT } as const;
const DELIVERY = { job: 'deliver', payload: payload<WebhookJob>('tenantId', 'webhookId'), ...NOTICE } as const;

/** Every queue: its payload and its options. Their processors: inference.ts and durable-work.ts in workers/queue. */
export const JOBS = {
  interactive: CHAT,
  /** Lines of batches: nobody waits for them, so they yield to the other queue. */
  batch: CHAT,
  webhooks: DELIVERY,
  /** Slow or failing receivers have a queue of their own, so that the others need not wait behind them. */
  'webhooks-slow': DELIVERY,
  compliance: { job: 'run', payload: payload<ComplianceJob>('tenantId', 'jobId'), ...NOTICE },
} as const satisfies Record<string, JobDefinition>;

export type JobQueueName = keyof typeof JOBS;

export type JobPayload<Name extends JobQueueName> = Record<(typeof JOBS)[Name]['payload'][number], string>;

/** Throws unless the payload is one of this queue. */
export function parseJob<Name extends JobQueueName>(name: Name, data: unknown): JobPayload<Name> {
  const missing = JOBS[name].payload.find((id) => !isRecord(data) || typeof data[id] !== 'string' || data[id] === '');
  if (missing !== undefined) throw new Error(`A job of the queue ${name} cannot be read: it has no ${missing}`);
  // It has just been checked.
  return data as JobPayload<Name>;
}

/** The queues of each shard. */
export const QUEUE_NAMES = ['interactive', 'batch'] as const satisfies readonly JobQueueName[];
export type QueueName = (typeof QUEUE_NAMES)[number];

export const WEBHOOK_QUEUE_NAMES = ['webhooks', 'webhooks-slow'] as const satisfies readonly JobQueueName[];
export type WebhookQueueName = (typeof WEBHOOK_QUEUE_NAMES)[number];

/** The queue that requests of a route take. */
export function queueOf(endpoint: ChatRoute): QueueName {
  return endpoint === 'batch' ? 'batch' : 'interactive';
}

/** Stored data does not have the shape that this version of the code reads. */
export class UnreadableError extends Error {
  override readonly name = 'UnreadableError';
}

const TIER_NAMES: ReadonlySet<unknown> = new Set(TIERS);
const MODE_NAMES: ReadonlySet<unknown> = new Set(KEY_MODES);

/**
 * Whether this is what the service itself has stored, and not damaged: limits and other fields were checked before that.
 * Newer code may store more.
 */
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

/** Shows nothing of what is stored: it is the caller's text. */
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

/** The published name under which a request was asked for. Undefined: none, or that of its tier. */
export function nameOf({ tier, request: { model } }: { tier: string; request: ChatRequest }): string | undefined {
  return model === tier ? undefined : model;
}

/** The body of a request, as the ingress stored it. Throws an UnreadableError. */
export function parseEnvelope(json: string): RequestEnvelope {
  // The service has written it.
  return read(json, 'The body of the request', isEnvelope) as RequestEnvelope;
}

/** The request of a batch's line. Throws an UnreadableError. */
export function parseStoredRequest(json: string): ChatRequest {
  // The service has written it.
  return read(json, 'The line', isRequest) as ChatRequest;
}

/** The fields of an ended request's record that its readers need. */
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

/** A field that a record does not have is empty text, or absent. */
export type AnswerFields = Partial<Record<(typeof ANSWER_FIELDS)[number], string>>;

/**
 * An ended request as Redis has it: the fields of its record that a reader needs, and the entries of its stream. Once
 * restored, it reads the same, byte for byte.
 */
export interface EndedAnswer {
  requestId: string;
  tenantId: string;
  fields: AnswerFields;
  /** Last sequence number and payload of each entry, in order (shared/contracts/events.ts). */
  entries: { lastSeq: number; payload: string }[];
}

/** An answer that may be asked for again for a day (docs/spec.md#retention). */
export interface StoredAnswer extends EndedAnswer {
  mode: KeyMode;
  entityId?: string;
  /** Undefined: the request was asynchronous, or its key does not remember it because it ended without an answer. */
  idempotency?: IdempotencyName;
  /** Milliseconds since the epoch. */
  expiresAt: number;
}

/** Answers asked for with an Idempotency-Key or asynchronously are stored for a day (docs/spec.md#retention). */
export const STORED_ANSWER_MS = 24 * 3_600_000;

/** Until when the answer stands for its Idempotency-Key, however long it is kept. Milliseconds since the epoch. */
export function namedUntil({ fields }: EndedAnswer): number {
  return Number(fields['acceptedAt']) + STORED_ANSWER_MS;
}
