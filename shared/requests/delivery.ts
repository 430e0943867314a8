import { KIND_NAMES } from '../contracts/events.ts';
import type { FinishReason, Increment, Terminal, TokenKinds } from '../contracts/events.ts';
import type { Tier } from '../contracts/chat-request.ts';
import { nameOf, parseEnvelope, UnreadableError } from '../contracts/jobs.ts';
import type { ChatRoute, IdempotencyName, QueueName, RequestEnvelope } from '../contracts/jobs.ts';
import type { KeyMode } from '../contracts/space.ts';
import type { FinishedNotice } from '../contracts/finished-notice.ts';
import type { SettlementRecord } from '../contracts/settlement.ts';
import type { Rates } from '../domain/routing.ts';
import type { ScriptReply } from '../redis/scripts.ts';

/** A higher fence shuts out the writes of every lower one. */
export interface ClaimFence {
  shard: number;
  fence: number;
  /** Names the claim: the lock of its job. After a rollback of Redis another claim may have the same fence. */
  owner: string;
}

export interface ClaimedRequest extends ClaimFence {
  kind: 'run';
  envelope: RequestEnvelope;
  /** Milliseconds until the request's deadline; negative when it has passed. */
  remainingMs: number;
  /** The last event's number from an earlier delivery; 0: nothing was sent. */
  sent: number;
  cancelled: boolean;
  seq: number;
  held: Hold;
  /** At acceptance. Undefined: the record has none. */
  rates: Rates | undefined;
  /** Counted by an earlier delivery; 0: unknown. */
  promptTokens: number;
  /** Fields that only the record has, unchanged; '' where absent. */
  terms: RecordTerms;
  /** By Redis's clock, as all times of a request: this process's clock may differ. */
  now: number;
}

/** A request's part of each bound; Infinity if the bound does not apply to it. */
export interface Hold {
  micro: number;
  /** Of the monthly budget, or of the test allowance. */
  tokens: number;
}

export type WriteOutcome = 'ok' | 'cancelled' | 'superseded';
export type Renewal = { outcome: 'ok' | 'cancelled'; held: Hold } | { outcome: 'superseded' };

export type FinalStatus = 'completed' | 'failed' | 'cancelled';

export interface FinishInput {
  status: FinalStatus;
  deltas: readonly Increment[];
  terminal: Terminal;
  costMicro: number;
  /** For the key's window and the test allowance beside the charge: unpaid work of providers, size of vectors. */
  unbilledTokens?: number;
  /** Providers' work among them, which counts towards the tenant's hour. */
  unpaidTokens?: number;
  /** The charge may overdraw the account by this much. */
  overdraftMicro?: number;
  retentionMs: number;
  /** Absent: no charge, no ledger entry (docs/spec.md#ledger). */
  settlement?: SettlementRecord;
  /** For webhooks, besides the booking. */
  notice?: FinishedNotice;
  /** Called when nobody pays for this end, because the caller was told of a failure; repeats call again. */
  whenUnbilled?: () => void;
  /** The job ends with the request. Absent: BullMQ ends the job, or there is none. */
  endsJob?: boolean;
}

/** `limit`: tokens of the month, or of a test key's day; `onDisconnect`: applies without readers. */
type RecordTerms = Readonly<Record<'limit' | 'onDisconnect' | 'retentionMs', string>>;

/** A running request without its text. Times are milliseconds since the epoch, by Redis's clock. */
export interface RecordSnapshot {
  tier: Tier;
  /** The published name that the caller asked for. */
  name?: string;
  mode: KeyMode;
  endpoint: ChatRoute;
  acceptedAt: number;
  startedAt: number;
  /** Place in the order of acceptance. */
  seq: number;
  deadline: number;
  rates?: Rates;
  terms: RecordTerms;
  metadataJson?: string;
  idempotency?: IdempotencyName;
  /** A pseudonym, by which a deletion finds the request. */
  entityHash?: string;
}

/** Reads `queue`, `tier`, `billed` and `acceptedAt` of a record whose request's body is lost. */
export function factsOfRecord(queue: QueueName, [tier, billed, acceptedAt]: readonly (string | null | undefined)[]) {
  return {
    // Only an interactive request's body says whether it was streamed.
    endpoint: queue === 'batch' ? 'batch' : 'chat',
    // Written by admit.lua only.
    tier: tier as Tier,
    mode: billed === '0' ? 'test' : 'live',
    acceptedAt: Number(acceptedAt),
  } as const;
}

export interface DeliveryRef {
  shard: number;
  requestId: string;
  tenantId: string;
  keyId: string;
  queue: QueueName;
  fence: number;
  /** Only writes of this claim count. Absent: any with this fence. */
  owner?: string;
  /** For a Redis that loses the request. Absent where an earlier delivery has sent text unknown here. */
  facts?: RecordSnapshot;
  /** Also for a loss, while the request runs. */
  envelope?: RequestEnvelope | undefined;
  /** Set once the running request was put back: a deletion in between did not know it. */
  wasRestored?: boolean;
}

/** Totals that a running request asks for; its hold is never reduced. */
export interface HoldRequest {
  weight: number;
  /** Granted as far as the bounds allow. */
  required: Hold;
  /** Ahead of need: granted if it is a small part of what is left. */
  preferred: Hold;
  /** The request may exceed a bound by this, if no other request holds anything of it. */
  overdraft: Hold;
}

/** `entityHash`: the entity's pseudonym. */
export function snapshotOf(claimed: ClaimedRequest, entityHash: string | undefined): RecordSnapshot {
  const { envelope, seq, now, remainingMs, rates, terms } = claimed;
  const { tier, mode, endpoint, acceptedAt, request, kept } = envelope;
  const { metadataJson } = request;
  const name = nameOf(envelope);
  const idempotency = kept?.idempotency ?? envelope.idempotency;
  return {
    tier,
    mode,
    endpoint,
    acceptedAt,
    startedAt: now,
    seq,
    deadline: now + remainingMs,
    terms,
    ...(rates === undefined ? {} : { rates }),
    ...(name === undefined ? {} : { name }),
    ...(metadataJson === undefined ? {} : { metadataJson }),
    ...(idempotency === undefined ? {} : { idempotency }),
    ...(entityHash === undefined ? {} : { entityHash }),
  };
}

/** Only batches have the record's field `queue`. */
export function queueOfRecord(queue: string | null | undefined): QueueName {
  return queue === 'batch' ? 'batch' : 'interactive';
}

/** A script's reply has -1 if a bound does not apply. */
export function toHold(micro: unknown, tokens: unknown): Hold {
  const amountOf = (held: unknown) => (Number(held) === -1 ? Infinity : Number(held));
  return { micro: amountOf(micro), tokens: amountOf(tokens) };
}

/** For a record: micro-credits of a prompt token and a completion token, and of kinds with their own rate. */
export function ratesText({ promptMicro, completionMicro, kinds = {} }: Rates): string {
  const own = KIND_NAMES.flatMap((name) => (kinds[name] === undefined ? [] : [`${name}=${kinds[name]}`]));
  return [promptMicro, completionMicro, ...own].join(' ');
}

/** `rates` begins as `ratesText` wrote it. */
function toRates(rates: string): Rates | undefined {
  const [prompt, completion, ...more] = rates.split(' ');
  if (prompt === undefined || completion === undefined) return undefined;
  const own = more.flatMap((part) => {
    const [name, rate] = part.split('=');
    return rate === undefined ? [] : [[name, Number(rate)] as const];
  });
  const kinds = own.length === 0 ? {} : { kinds: Object.fromEntries(own) as TokenKinds };
  return { promptMicro: Number(prompt), completionMicro: Number(completion), ...kinds };
}

/** Redis came back without some of the text, and has this last number. */
export function knownSeq(outcome: ScriptReply | undefined): number | undefined {
  return typeof outcome === 'string' && outcome.startsWith('behind ') ? Number(outcome.slice(7)) : undefined;
}

/** `reply` follows the order of claim_request (lua/claiming.lua). */
export function toClaimed(claim: ClaimFence, envelope: RequestEnvelope, reply: readonly string[]): ClaimedRequest {
  const [
    ,
    ,
    remainingMs,
    sent,
    cancel,
    seq,
    now,
    micro,
    tokens,
    rates = '',
    promptTokens,
    limit = '',
    onDisconnect = '',
    retentionMs = '',
  ] = reply;
  return {
    kind: 'run',
    ...claim,
    envelope,
    remainingMs: Number(remainingMs),
    sent: Number(sent),
    cancelled: cancel !== '',
    seq: Number(seq),
    held: toHold(micro, tokens),
    rates: toRates(rates),
    promptTokens: Number(promptTokens),
    terms: { limit, onDisconnect, retentionMs },
    now: Number(now),
  };
}

/** Returns the error: another version may have written the body. */
export function readEnvelope(body: string): RequestEnvelope | UnreadableError {
  try {
    return parseEnvelope(body);
  } catch (error) {
    if (error instanceof UnreadableError) return error;
    throw error;
  }
}

export function statusOf(reason: FinishReason): FinalStatus {
  if (reason === 'error') return 'failed';
  return reason === 'cancelled' ? 'cancelled' : 'completed';
}
