import type { RequestEnvelope } from '../../../shared/contracts/jobs.ts';
import type { Pseudonyms } from '../../../shared/domain/compliance/pseudonyms.ts';
import type { Principal } from '../../../shared/domain/keys/principal.ts';
import { seqAt } from '../../../shared/domain/requests/acceptance-order.ts';
import type { LedgerRepository } from '../../../shared/infra/mongo/accounts/ledger-repository.ts';
import type { ErasureRepository } from '../../../shared/infra/mongo/compliance/erasure-repository.ts';
import type { EntityRepository } from '../../../shared/infra/mongo/entities/entity-repository.ts';
import type { AnswerRepository } from '../../../shared/infra/mongo/requests/answer-repository.ts';
import type { Clock } from '../../../shared/lifecycle/clock.ts';
import { keepsNothing } from '../../admission/retention.ts';
import type { SkipReason } from './replay-outcome.ts';

export interface ReplayChecksDeps {
  answers: Pick<AnswerRepository, 'findNamed'>;
  ledger: Pick<LedgerRepository, 'settledAt'>;
  entities: Pick<EntityRepository, 'forgottenSeq'>;
  erasures: Pick<ErasureRepository, 'latest'>;
  pseudonyms: Pick<Pseudonyms, 'of'>;
  clock: Clock;
}

/** What MongoDB knows that may forbid a replay of a failed request. */
export interface ReplayChecks {
  /** The request's entity, or that entity's history, has been deleted since the request was accepted. */
  isErased(envelope: RequestEnvelope): Promise<boolean>;
  /** Undefined: nothing forbids a replay. `principal`: the principal of the request's key, if the key still exists. */
  whyNot(envelope: RequestEnvelope, principal: Principal | undefined): Promise<SkipReason | undefined>;
}

/** Why nothing of this key may run now. */
export function refusalOf(principal: Principal | undefined, now: number): SkipReason | undefined {
  if (principal?.keyStatus !== 'active') return 'key_revoked';
  if ((principal.expiresAt ?? Infinity) <= now) return 'key_expired';
  if (principal.tenantStatus === 'suspended') return 'account_suspended';
  return keepsNothing(principal) ? 'nothing_is_kept' : undefined;
}

export function createReplayChecks(deps: ReplayChecksDeps): ReplayChecks {
  const { answers, ledger, entities, erasures, pseudonyms, clock } = deps;

  async function isErased({ tenantId, mode, acceptedAt, request }: RequestEnvelope): Promise<boolean> {
    const { entityId } = request;
    const space = { tenantId, mode };
    const [erased, forgotten] = await Promise.all([
      erasures.latest(space, entityId === undefined ? undefined : pseudonyms.of(tenantId, entityId)),
      entityId === undefined ? 0 : entities.forgottenSeq(space, entityId),
    ]);
    return seqAt(acceptedAt) <= Math.max(erased, forgotten);
  }

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

  return { isErased, whyNot };
}
