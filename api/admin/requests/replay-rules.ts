import type { RequestEnvelope } from '../../../shared/contracts/jobs.ts';
import type { Principal } from '../../../shared/domain/principal.ts';
import type { IsDeletedSince } from '../../../shared/erasure-gate.ts';
import type { Clock } from '../../../shared/lifecycle/clock.ts';
import type { LedgerRepository } from '../../../shared/mongo/accounts/ledger-repository.ts';
import type { FailedLine, FailedLines } from '../../../shared/mongo/batches/failed-lines.ts';
import type { AnswerRepository } from '../../../shared/mongo/requests/answer-repository.ts';
import type { PrincipalRepository } from '../../../shared/mongo/tenants/principal-repository.ts';
import { keepsNothing } from '../../http/request-terms.ts';

export const SKIP_REASONS = {
  account_suspended: 'The account is suspended.',
  budget_exceeded: 'The monthly token budget is used up.',
  entity_deleted: 'Its entity, or the entity’s history, has been deleted since.',
  idempotency_key_reused: 'Its `Idempotency-Key` stands for a later request.',
  insufficient_credits: 'The credits are used up or held.',
  key_expired: 'Its API key has expired.',
  key_revoked: 'Its API key is revoked or gone.',
  limit_reached: 'A limit or the queue has no room now; replay it later.',
  not_replayable: 'It is unknown, has not failed in an outage, has text, has been replayed, or its day is over.',
  nothing_is_kept: 'The tenant keeps nothing of its conversations (`retention_seconds` is 0).',
} as const;
export type SkipReason = keyof typeof SKIP_REASONS;

export type ReplayOutcome = { kind: 'replayed' } | { kind: 'skipped'; reason: SkipReason; retryAfterMs: number };

export const REPLAYED: ReplayOutcome = { kind: 'replayed' };
export const skip = (reason: SkipReason, retryAfterMs = 0): ReplayOutcome => ({
  kind: 'skipped',
  reason,
  retryAfterMs,
});

export interface ReplayChecksDeps {
  answers: AnswerRepository;
  ledger: LedgerRepository;
  isDeletedSince: IsDeletedSince;
  clock: Clock;
}

/** Facts in MongoDB that may forbid a replay of a failed request. */
export type ReplayChecks = ReturnType<typeof createReplayChecks>;

/** The reason why no request of this key may run now; undefined: there is none. */
function refusalOf(principal: Principal | undefined, now: number): SkipReason | undefined {
  if (principal?.keyStatus !== 'active') return 'key_revoked';
  if ((principal.expiresAt ?? Infinity) <= now) return 'key_expired';
  if (principal.tenantStatus === 'suspended') return 'account_suspended';
  return keepsNothing(principal) ? 'nothing_is_kept' : undefined;
}

export function createReplayChecks(deps: ReplayChecksDeps) {
  const { answers, ledger, isDeletedSince, clock } = deps;

  const isErased = (envelope: RequestEnvelope): Promise<boolean> =>
    isDeletedSince(envelope, envelope.request.entityId, envelope.acceptedAt);

  async function whyNot(envelope: RequestEnvelope, principal: Principal | undefined): Promise<SkipReason | undefined> {
    const { tenantId, mode, requestId, kept } = envelope;
    const now = clock.now();
    const refused = refusalOf(principal, now);
    if (refused !== undefined) return refused;
    if (await isErased(envelope)) return 'entity_deleted';
    const name = kept?.idempotency?.name;
    if (name !== undefined && (await answers.findNamed({ tenantId, mode }, name, now)) !== undefined)
      return 'idempotency_key_reused';
    const charged = await ledger.settledAt({ tenantId, mode: 'any' }, requestId);
    return charged === undefined ? undefined : 'not_replayable';
  }

  return {
    /** The request's entity, or that entity's history, has been deleted since the request was accepted. */
    isErased,
    /** Undefined: nothing forbids a replay. `principal`: the principal of the request's key, if the key still exists. */
    whyNot,
  };
}

export interface ReplayLineDeps {
  lines: FailedLines;
  principals: PrincipalRepository;
  isDeletedSince: IsDeletedSince;
  clock: Clock;
}

export type ReplayLine = (line: FailedLine) => Promise<ReplayOutcome>;

/**
 * Puts a line that was given up back into waiting, as long as its batch runs: the dispatcher sends it after all others,
 * as a request with a new id. Like every line, it waits for credits and limits.
 */
export function createReplayLine({ lines, principals, isDeletedSince, clock }: ReplayLineDeps): ReplayLine {
  return async (line) => {
    const batch = await lines.batchOf(line);
    if (batch === undefined) return skip('not_replayable');
    const reason = refusalOf(await principals.findByKey(line.tenantId, batch.keyId), clock.now());
    if (reason !== undefined) return skip(reason);
    if (await isDeletedSince(line, line.entityId, batch.createdAt)) return skip('entity_deleted');
    return (await lines.reopen(line)) ? { kind: 'replayed' } : skip('not_replayable');
  };
}
