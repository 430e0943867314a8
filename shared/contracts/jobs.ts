import type { ChatRequest, Tier } from './chat-request.ts';
import type { IdempotencyName } from './kept-answer.ts';
import type { ModerationSettings } from './moderation-settings.ts';

/** Which public route a request came through; its throttle, its lane and its row in the ledger follow from it. */
export type Endpoint = 'chat' | 'chat.stream' | 'batch';
export type KeyMode = 'live' | 'test';

/**
 * What a worker needs beside the request record, kept in Redis until the request ends. It carries the tenant's
 * settings of the moment of acceptance, so a request without `entity_id` needs no MongoDB.
 */
export interface RequestEnvelope {
  requestId: string;
  tenantId: string;
  keyId: string;
  mode: KeyMode;
  endpoint: Endpoint;
  tier: Tier;
  /** The caller reads the answer as a stream, so the provider is asked for one. */
  stream: boolean;
  /** Milliseconds since the epoch. */
  acceptedAt: number;
  /** How long the answer is kept after the end; milliseconds. */
  retentionMs: number;
  /** Present where the answer is kept for a day, under an Idempotency-Key if there is one. */
  kept?: { idempotency?: IdempotencyName };
  tenant: { subject?: string; grade?: string; moderation?: ModerationSettings };
  request: ChatRequest;
}

/** Job data are ids only: queues are watched by people (docs/spec/contract.md section 7). */
export interface ChatJob {
  tenantId: string;
}

/** Every queue of a shard, with the retention of its ended jobs. */
export const QUEUES = {
  interactive: {
    /** Retries are the pipeline's own, inside one delivery. */
    attempts: 1,
    /** An ended job holds nothing that record, metrics and log do not; keeping it costs a third of its whole way. */
    removeOnComplete: true,
    removeOnFail: { count: 1_000, age: 86_400 },
  },
  /** Lines of batches: nobody waits for them, so they yield to the other lane. */
  batch: {
    attempts: 1,
    removeOnComplete: true,
    removeOnFail: { count: 1_000, age: 86_400 },
  },
} as const;

export type QueueName = keyof typeof QUEUES;

// Object.keys forgets that the names are those of the record.
export const QUEUE_NAMES = Object.keys(QUEUES) as QueueName[];

/** The lane that requests of a route take. */
export function laneOf(endpoint: Endpoint): QueueName {
  return endpoint === 'batch' ? 'batch' : 'interactive';
}

/** Something is due for this webhook. */
export interface WebhookJob {
  tenantId: string;
  webhookId: string;
}

/** Receivers that fail or take long have a lane of their own, so that the others need not wait behind them. */
export type WebhookQueueName = 'webhooks' | 'webhooks-slow';

/** A job holds nothing that MongoDB does not, and one that has ended must not be in the way of the next. */
export const WEBHOOK_QUEUES = { attempts: 1, removeOnComplete: true, removeOnFail: true } as const;

/** The same holds for exports and deletions. */
export const COMPLIANCE_QUEUE = WEBHOOK_QUEUES;

/** An export or a deletion has something to do. */
export interface ComplianceJob {
  tenantId: string;
  jobId: string;
}
