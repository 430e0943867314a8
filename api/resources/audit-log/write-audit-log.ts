import type { Logger } from '../../../shared/infra/logging/logger.ts';
import type { AuditRepository } from '../../../shared/infra/mongo/tenants/audit-repository.ts';
import type { Clock } from '../../../shared/lifecycle/clock.ts';
import { derivedId } from '../../../shared/lifecycle/ids.ts';
import { spaceFields } from '../../../shared/infra/mongo/spaces.ts';
import { HAPPENS_ONCE, targetInLog } from '../../tenant-events.ts';
import type { TenantEventListener } from '../../tenant-events.ts';

export interface WriteAuditLogDeps {
  audit: Pick<AuditRepository, 'append'>;
  clock: Clock;
  log: Logger;
}

/**
 * Writes the events of a tenant's account into its audit log. Never rejects, because the event has already happened: an
 * entry that cannot be written goes to the operator's log instead.
 */
export function createWriteAuditLog({ audit, clock, log }: WriteAuditLogDeps): TenantEventListener {
  return async (event) => {
    const { type: action, by, target, details } = event;
    const { tenantId, id: actor, requestId } = by;
    const space = spaceFields(by);
    try {
      await audit.append({
        // An event that happens only once has a derived id, so no second entry is written for it.
        ...(HAPPENS_ONCE.has(action) ? { _id: derivedId('aud', tenantId, action, target) } : {}),
        ...space,
        createdAt: clock.now(),
        actor,
        action,
        target,
        requestId,
        details: { ...details },
      });
    } catch (error) {
      log.error(`The audit log lacks a line: ${action} of ${targetInLog(event)} by ${actor}.`, {
        requestId,
        tenantId,
        error,
      });
    }
  };
}
