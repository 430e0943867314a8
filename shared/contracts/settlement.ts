import type { Tier } from './chat-request.ts';
import { KIND_NAMES } from './events.ts';
import type { FinishReason, TokenKinds } from './events.ts';
import type { ErrorCode } from '../errors/codes.ts';
import type { ChatRoute, RequestEnvelope } from './jobs.ts';
import { isRecord } from './parse.ts';
import type { KeyMode } from './space.ts';

/** The operator's cost in billionths of a currency (ISO 4217, lower case). */
export interface Spend {
  currency: string;
  nano: number;
}

/**
 * Hears of a request that ended without a run: cancelled (no code), taken back or expired while it waited, or lost.
 * `isGuess`: its worker may know better. Never gets text, although an envelope has some.
 */
export type OnEarlyEnd = (
  request: Pick<RequestEnvelope, 'requestId' | 'tenantId' | 'keyId' | 'mode' | 'endpoint' | 'tier' | 'acceptedAt'>,
  how: { code?: ErrorCode | undefined; reason: string; isGuess?: true },
) => void;

/** A finished request's debt to the ledger: one outbox entry, at most one ledger entry. */
export interface SettlementRecord extends TokenKinds {
  requestId: string;
  tenantId: string;
  keyId: string;
  mode: KeyMode;
  tier: Tier;
  endpoint: ChatRoute;
  entityId?: string;
  provider: string;
  model: string;
  promptTokens: number;
  completionTokens: number;
  estimated: boolean;
  /** Micro-credits; 0 for test keys (docs/spec.md#test-keys). */
  costMicro: number;
  finishReason: FinishReason;
  /** Milliseconds since the epoch. */
  acceptedAt: number;
  finishedAt: number;
  /** Of all provider calls. Absent: some target that was called has no cost. */
  spend?: Spend;
}

const TEXTS = ['tenantId', 'keyId', 'tier', 'endpoint', 'finishReason'];
/** Provider and model are empty if a worker died before it could name them. */
const ANY_TEXTS = ['requestId', 'provider', 'model'];
const COUNTS = ['promptTokens', 'completionTokens', 'costMicro', 'acceptedAt', 'finishedAt'];

const isText = (value: unknown) => typeof value === 'string' && value !== '';
const isCount = (value: unknown) => Number.isSafeInteger(value) && Number(value) >= 0;

/**
 * Money: nothing is converted or guessed. A record can be older or newer than this code, so unknown fields, tiers and
 * finish reasons are allowed. Checked by hand, because joi takes six times as long.
 */
function isSettlement(value: unknown): boolean {
  if (!isRecord(value)) return false;
  const { requestId, mode, entityId, estimated, spend } = value;
  return (
    TEXTS.every((name) => isText(value[name])) &&
    ANY_TEXTS.every((name) => typeof value[name] === 'string') &&
    COUNTS.every((name) => isCount(value[name])) &&
    KIND_NAMES.every((name) => value[name] === undefined || isCount(value[name])) &&
    String(requestId).startsWith('req_') &&
    (mode === 'live' || mode === 'test') &&
    typeof estimated === 'boolean' &&
    (entityId === undefined || isText(entityId)) &&
    (spend === undefined || (isRecord(spend) && isText(spend['currency']) && isCount(spend['nano'])))
  );
}

export function parseSettlement(json: string): SettlementRecord | undefined {
  try {
    const value: unknown = JSON.parse(json);
    // It has just been checked.
    return isSettlement(value) ? (value as SettlementRecord) : undefined;
  } catch {
    return undefined;
  }
}
