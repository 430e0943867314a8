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

/** The claim of a delivery: a higher fence shuts out the writes of every lower one. */
export interface ClaimFence {
  shard: number;
  fence: number;
  /** Names this claim: the lock of its job. After a rollback of Redis another claim may have the same fence. */
  owner: string;
}

/** A request that a delivery owns. */
export interface ClaimedRequest extends ClaimFence {
  kind: 'run';
  envelope: RequestEnvelope;
  /** Milliseconds until the request's deadline; negative when it has passed. */
  remainingMs: number;
  /** Sequence number of the last event that an earlier delivery sent; 0: nothing was sent. */
  sent: number;
  cancelled: boolean;
  seq: number;
  held: Hold;
  /** The prices at its acceptance. Undefined: the record has none. */
  rates: Rates | undefined;
  /** Prompt tokens as an earlier delivery counted them; 0: unknown. */
  promptTokens: number;
  /** Fields of the record that nothing else says, as they are there; '' where absent. */
  terms: RecordTerms;
  /** By Redis's clock, as all times of a request: the clock of this process may differ. */
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
  /** Increments that have not been appended yet. */
  deltas: readonly Increment[];
  terminal: Terminal;
  costMicro: number;
  /**
   * Tokens that count in the key's window and the test allowance beside those of the charge: of providers' work that nobody
   * pays for, and of the size of vectors.
   */
  unbilledTokens?: number;
  /** Those of them that are work of providers: they count towards the tenant's hour. */
  unpaidTokens?: number;
  /** The charge may overdraw the account by this much. */
  overdraftMicro?: number;
  /** Answer and record are kept this long. */
  retentionMs: number;
  /** Absent: nothing is charged, no ledger entry (docs/spec.md#ledger). */
  settlement?: SettlementRecord;
  /** An event for webhooks, besides the booking. */
  notice?: FinishedNotice;
  /** Called when nobody pays for this end, as its caller was told that it failed; again when it is repeated. */
  whenUnbilled?: () => void;
  /** The job ends with the request. Absent: BullMQ ends the job, or there is none. */
  endsJob?: boolean;
}

/** `limit`: tokens of the month, or of a test key's day; `onDisconnect`: what happens without readers. */
type RecordTerms = Readonly<Record<'limit' | 'onDisconnect' | 'retentionMs', string>>;

/** The record of a request that runs, without its text. Times are milliseconds since the epoch, by Redis's clock. */
export interface RecordSnapshot {
  tier: Tier;
  /** The published name under which it was asked for. */
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
  /** The pseudonym of its entity, under which a deletion finds the request. */
  entityHash?: string;
}

/** Meaning of the fields `queue`, `tier`, `billed` and `acceptedAt` of a record for a request whose body is lost. */
export function factsOfRecord(queue: QueueName, [tier, billed, acceptedAt]: readonly (string | null | undefined)[]) {
  return {
    // Of an interactive request only its body says whether it was streamed.
    endpoint: queue === 'batch' ? 'batch' : 'chat',
    // Written by admit.lua only.
    tier: tier as Tier,
    mode: billed === '0' ? 'test' : 'live',
    acceptedAt: Number(acceptedAt),
  } as const;
}

/** Names one running delivery. */
export interface DeliveryRef {
  shard: number;
  requestId: string;
  tenantId: string;
  keyId: string;
  queue: QueueName;
  fence: number;
  /** The claim to which its writes belong. Absent: any with this fence. */
  owner?: string;
  /** For a Redis that loses all of the request. Absent where an earlier delivery has sent text, which is not known here. */
  facts?: RecordSnapshot;
  /** The same, while it runs. */
  envelope?: RequestEnvelope | undefined;
  /** Set once the running request was put back: a deletion that came between did not know it. */
  wasRestored?: boolean;
}

/** The hold that a running request asks for, as totals. What it holds is never reduced. */
export interface HoldRequest {
  /** Its tokens in the key's window. */
  weight: number;
  /** Granted as far as the bounds allow. */
  required: Hold;
  /** Wanted ahead of need: granted if it is a small part of what is left. */
  preferred: Hold;
  /** By how much the request may exceed a bound of which no other request holds anything. */
  overdraft: Hold;
}

/** The record of a claimed request. `entityHash`: the pseudonym of its entity. */
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

/** The queue of a record. Its field `queue` is written for batches only. */
export function queueOfRecord(queue: string | null | undefined): QueueName {
  return queue === 'batch' ? 'batch' : 'interactive';
}

/** From a script's reply, which has -1 if a bound does not apply. */
export function toHold(micro: unknown, tokens: unknown): Hold {
  const amountOf = (held: unknown) => (Number(held) === -1 ? Infinity : Number(held));
  return { micro: amountOf(micro), tokens: amountOf(tokens) };
}

/** Rates as a record has them: micro-credits a prompt token and a completion token, and of the kinds that have their own. */
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

/** The last sequence number that Redis has, if it came back without some of the text. */
export function knownSeq(outcome: ScriptReply | undefined): number | undefined {
  return typeof outcome === 'string' && outcome.startsWith('behind ') ? Number(outcome.slice(7)) : undefined;
}

/** `reply`: the texts that claim_request returns (lua/claiming.lua), in its order. */
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

/** Returns the error, as the body may have been written by another version. */
export function readEnvelope(body: string): RequestEnvelope | UnreadableError {
  try {
    return parseEnvelope(body);
  } catch (error) {
    if (error instanceof UnreadableError) return error;
    throw error;
  }
}

/** The look-up's status for each finish reason. */
export function statusOf(reason: FinishReason): FinalStatus {
  if (reason === 'error') return 'failed';
  return reason === 'cancelled' ? 'cancelled' : 'completed';
}
