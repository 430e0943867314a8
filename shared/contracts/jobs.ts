import type { ChatRequest, Tier } from './chat-request.ts';
import type { FinishReason, TokenKinds } from './events.ts';
import { isRecord } from './parse.ts';
import type { ModerationSettings, KeyMode } from './space.ts';
import type { ErrorCode } from '../errors/codes.ts';

/** Which public route a request came through; its throttle, its queue and its row in the ledger follow from it. */
export const CHAT_ROUTES = ['chat', 'chat.stream', 'batch', 'embeddings', 'moderations'] as const;
export type ChatRoute = (typeof CHAT_ROUTES)[number];

/** The name of an Idempotency-Key and of the body it came with; see api/limits/request-terms.ts. */
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
