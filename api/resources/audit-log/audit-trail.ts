import type { Response } from 'express';

import type { Logger } from '../../../shared/infra/logging/logger.ts';
import type { AuditEntry, AuditRepository } from '../../../shared/infra/mongo/tenants/audit-repository.ts';
import type { Clock } from '../../../shared/lifecycle/clock.ts';
import { derivedId } from '../../../shared/lifecycle/ids.ts';
import { contextOf, principalOf } from '../../http/request-context.ts';

/** What happened: `key.revoked`, to which id, and what an auditor wants to know beside it, without secrets. */
export interface AuditedAct {
  action: string;
  target: string;
  details?: Record<string, unknown>;
  /** It happens to its target once, however often it is noted. */
  isOnce?: boolean;
}

/**
 * Notes in a tenant's audit log what has just been done. Never rejects: what is done is done, so a line that cannot be
 * written goes to the operator's log instead.
 */
export interface AuditTrail {
  /** By the key that sent the request. */
  byKey(res: Response, act: AuditedAct): Promise<void>;
  byAdministrator(res: Response, tenantId: string, act: AuditedAct): Promise<void>;
}

export interface AuditTrailDeps {
  audit: Pick<AuditRepository, 'append'>;
  clock: Clock;
  log: Logger;
}

export function createAuditTrail({ audit, clock, log }: AuditTrailDeps): AuditTrail {
  async function note(res: Response, tenantId: string, actor: string, act: AuditedAct): Promise<void> {
    const { requestId } = contextOf(res);
    const { action, target, details = {}, isOnce = false } = act;
    const entry: AuditEntry = { tenantId, createdAt: clock.now(), actor, action, target, requestId, details };
    if (isOnce) entry._id = derivedId('aud', tenantId, action, target);
    try {
      await audit.append(entry);
    } catch (error) {
      log.error(`The audit log lacks a line: ${action} of ${target} by ${actor}.`, { requestId, tenantId, error });
    }
  }

  return {
    byKey(res, act) {
      const { tenantId, keyId } = principalOf(res);
      return note(res, tenantId, keyId, act);
    },
    byAdministrator: (res, tenantId, act) => note(res, tenantId, 'administrator', act),
  };
}
