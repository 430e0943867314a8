import { allowsScope } from '../../shared/domain/keys/api-key.ts';
import type { Principal } from '../../shared/domain/keys/principal.ts';
import type { ErrorDetail } from '../../shared/errors/error-body.ts';
import type { PrincipalRepository } from '../../shared/infra/mongo/tenants/principal-repository.ts';
import type { Clock } from '../../shared/lifecycle/clock.ts';
import type { OpenBatch } from './open-batch.ts';

/** Who sends a batch's lines, or why its key may no longer send. */
export type LineSender = { principal: Principal } | { fault: ErrorDetail };

/** For how many milliseconds a key's permissions are cached; admission sees revocations and suspensions at once. */
export const SENDER_MS = 2_000;

const REVOKED: ErrorDetail = { code: 'invalid_api_key', message: 'The API key of this batch has been revoked.' };
const NOT_ALLOWED: ErrorDetail = {
  code: 'endpoint_not_allowed',
  message: 'The API key of this batch has no scope for chat any more.',
};
const EXPIRED: ErrorDetail = { code: 'expired_api_key', message: 'The API key of this batch has expired.' };

export function createFindSender(principals: Pick<PrincipalRepository, 'findByKey'>, clock: Clock) {
  const known = new WeakMap<OpenBatch, { sender: LineSender; until: number }>();

  async function lookUp({ row }: OpenBatch): Promise<LineSender> {
    const principal = await principals.findByKey(row.tenantId, row.keyId);
    if (principal === undefined || principal.keyStatus === 'revoked') return { fault: REVOKED };
    if (principal.expiresAt !== undefined && principal.expiresAt <= clock.now()) return { fault: EXPIRED };
    if (!allowsScope(principal.scopes, 'chat')) return { fault: NOT_ALLOWED };
    return { principal };
  }

  return async (batch: OpenBatch): Promise<LineSender> => {
    const last = known.get(batch);
    if (last !== undefined && last.until > performance.now()) return last.sender;
    const sender = await lookUp(batch);
    known.set(batch, { sender, until: performance.now() + SENDER_MS });
    return sender;
  };
}

export type FindSender = ReturnType<typeof createFindSender>;
