import type { FinishReason, Terminal } from '../../../contracts/events.ts';
import type { QueueName, RequestEnvelope } from '../../../contracts/jobs.ts';
import { parseEnvelope, UnreadableError } from '../../../contracts/stored-request.ts';
import type { FinishedNotice } from '../../../contracts/finished-notice.ts';
import type { SettlementRecord } from '../../../contracts/settlement.ts';
import type { Rates } from '../../../domain/routing/routing.ts';
import type { ScriptReply } from '../scripts.ts';

/** An attempt's right to write: a higher fence shuts out every lower one. */
export interface ClaimedRequest {
  kind: 'run';
  shard: number;
  fence: number;
  /** Names this claim. After a rollback of Redis another claim may have the same fence. */
  owner: string;
  envelope: RequestEnvelope;
  /** Milliseconds until the request's deadline; negative when it has passed. */
  remainingMs: number;
  /** Sequence number of the last event that an earlier attempt sent; 0: nothing was sent. */
  sent: number;
  cancelled: boolean;
  seq: number;
  held: Held;
  /** The prices of its acceptance. Undefined: a record without them. */
  rates: Rates | undefined;
  /** What an earlier attempt asked, as it counted; 0: not known. */
  promptTokens: number;
  /** Redis's clock minus this process's is not known: all times of a request are Redis's. */
  now: number;
}

/** What a request holds of each bound; Infinity where the bound does not apply to it. */
export interface Held {
  micro: number;
  /** Of the monthly budget, or of the test allowance. */
  tokens: number;
}

/** `drop`: another attempt has it, or it has ended. */
export type Claim = ClaimedRequest | Unreadable | { kind: 'drop'; reason: string };

/** A claim that was made as its job was taken. */
export interface MadeClaim {
  owner: string;
  /** As claim.lua answers. */
  reply: ScriptReply[];
}

/** This attempt owns the request and cannot read its body: it can only end it. */
export interface Unreadable {
  kind: 'unreadable';
  ref: AttemptRef;
  sent: number;
  /** For how long its end is kept; milliseconds. */
  retentionMs: number;
  error: Error;
}

export type WriteOutcome = 'ok' | 'cancelled' | 'superseded';
export type Renewal = { outcome: 'ok' | 'cancelled'; held: Held } | { outcome: 'superseded' };

/** `cancelled` and `failed` are ends without an answer. */
export type FinalStatus = 'completed' | 'failed' | 'cancelled';

export interface Ending {
  status: FinalStatus;
  /** Text that has not been appended yet. */
  deltas: readonly string[];
  /** What this attempt has appended before, for a Redis that comes back without some of it. */
  earlier?: readonly string[];
  terminal: Terminal;
  costMicro: number;
  /** Of a request that nobody pays for: tokens a provider was asked for, which stay in the key's window and allowance. */
  unbilledTokens?: number;
  /** How far the charge may overdraw the account. */
  overdraftMicro?: number;
  /** How long answer and record are kept. */
  retentionMs: number;
  /** Absent: nothing is charged, no ledger entry (docs/spec/contract.md section 5). */
  settlement?: SettlementRecord;
  /** What webhooks hear of the end beside its booking. */
  notice?: FinishedNotice;
  /** The lock of the job that ends, and goes, with the request. Absent: the queue ends it, or there is none. */
  jobLock?: string;
}

/** Names one running attempt. */
export interface AttemptRef {
  shard: number;
  requestId: string;
  tenantId: string;
  keyId: string;
  queue: QueueName;
  fence: number;
  /** The claim that it writes for. Absent: whichever has the fence. */
  owner?: string;
}

/** What a running request asks to hold in all; what it holds already is never taken from it. */
export interface Needed {
  /** Tokens that it weighs in its key's window. */
  weight: number;
  /** Granted as far as there is so much. */
  must: Held;
  /** Asked ahead of need: granted as far as it is a small part of what is left. */
  ahead: Held;
  /** How far the request may go beyond a bound of which nobody else holds anything. */
  overrun: Held;
}

/** As raise_holds of account.lua answers it: -1 where a bound does not apply. */
export function toHeld(micro: unknown, tokens: unknown): Held {
  const amountOf = (held: unknown) => (Number(held) === -1 ? Infinity : Number(held));
  return { micro: amountOf(micro), tokens: amountOf(tokens) };
}

/** `rates`: micro-credits a token of prompt and completion, then more, as admit.lua wrote them. */
function toRates(rates: string): Rates | undefined {
  const [promptMicro, completionMicro] = rates.split(' ').map(Number);
  return promptMicro === undefined || completionMicro === undefined ? undefined : { promptMicro, completionMicro };
}

/** The last sequence number of a Redis that has come back without some of a request's text. */
export function knownSeq(outcome: ScriptReply): number | undefined {
  return typeof outcome === 'string' && outcome.startsWith('behind ') ? Number(outcome.slice(7)) : undefined;
}

export function toClaimed(
  claim: Pick<ClaimedRequest, 'shard' | 'fence' | 'owner'>,
  envelope: RequestEnvelope,
  reply: readonly string[],
): ClaimedRequest {
  const [, , remainingMs, sent, cancel, seq, now, micro, tokens, rates = '', promptTokens] = reply;
  return {
    kind: 'run',
    ...claim,
    envelope,
    remainingMs: Number(remainingMs),
    sent: Number(sent),
    cancelled: cancel !== '',
    seq: Number(seq),
    held: toHeld(micro, tokens),
    rates: toRates(rates),
    promptTokens: Number(promptTokens),
    now: Number(now),
  };
}

/** The body may be older than the code. */
export function readEnvelope(body: string): RequestEnvelope | UnreadableError {
  try {
    return parseEnvelope(body);
  } catch (error) {
    if (error instanceof UnreadableError) return error;
    throw error;
  }
}

/** What each finish reason means for the look-up of a request. */
export function statusOf(reason: FinishReason): FinalStatus {
  if (reason === 'error') return 'failed';
  return reason === 'cancelled' ? 'cancelled' : 'completed';
}
