import type { Response } from 'express';

import type { Principal } from '../../shared/domain/principal.ts';
import type { Logger } from '../../shared/logging/logger.ts';
import type { Admission } from '../../shared/requests/admission-store.ts';
import { contextOf, principalOf } from './request-context.ts';
import type { PrincipalCache } from './authenticate.ts';

/**
 * Follows a tenant that was moved to another shard: returns the call's principal with the new shard, with which the
 * caller repeats its step. Undefined: nothing has changed.
 *
 * A key that has changed is looked up again by the next call, though no message said so. If a tenant is refused as
 * suspended that is active in MongoDB, Redis is updated, because it may have come back without the latest change.
 */
export type FollowMove = (res: Response, figures: Admission) => Principal | undefined;

export interface FollowMoveDeps {
  principals: PrincipalCache;
  /** Completes a move whose process has died, and corrects the suspension. Costs little while that process lives. */
  recover: (tenantId: string) => Promise<void>;
  log: Logger;
}

/** No tenant moves more often during one call. */
const HOPS_MAX = 3;

/** The mark in Redis counts even if MongoDB is unavailable and principals are 15 minutes old. */
export function createFollowMove({ principals, recover, log }: FollowMoveDeps): FollowMove {
  const recovering = new Set<string>();

  function recoverOnce(tenantId: string): void {
    if (recovering.has(tenantId)) return;
    recovering.add(tenantId);
    recover(tenantId)
      .catch((error: unknown) => {
        log.warn('What Redis knows of a tenant, its place or its status, could not be set right.', { tenantId, error });
      })
      .finally(() => recovering.delete(tenantId));
  }

  return (res, { verdict, movedTo }) => {
    // True for nearly every call.
    if (verdict === 'admitted') return undefined;
    const principal = principalOf(res);
    if (verdict === 'changed') principals.invalidate(principal.keyId);
    if (verdict === 'suspended' && principal.tenantStatus === 'active') recoverOnce(principal.tenantId);
    if (verdict !== 'moving' && verdict !== 'moved') return undefined;
    const context = contextOf(res);
    const { redirects: count = 0 } = context;
    if (verdict === 'moving' || count === HOPS_MAX) recoverOnce(principal.tenantId);
    if (verdict === 'moving' || movedTo === undefined || count === HOPS_MAX) return undefined;
    context.redirects = count + 1;
    principals.relocate(principal.tenantId, movedTo);
    const moved = { ...principal, shard: movedTo };
    context.principal = moved;
    return moved;
  };
}
