import type { Logger } from '../../../shared/infra/logging/logger.ts';
import type { AuditRepository } from '../../../shared/infra/mongo/tenants/audit-repository.ts';
import type { Clock } from '../../../shared/lifecycle/clock.ts';
import { derivedId } from '../../../shared/lifecycle/ids.ts';
import { HAPPENS_ONCE } from '../../tenant-events.ts';
import type { TenantEventListener } from '../../tenant-events.ts';

export interface WriteAuditLogDeps {
  audit: Pick<AuditRepository, 'append'>;
  clock: Clock;
  log: Logger;
}

/**
 * Writes what is done in a tenant's account into its audit log. Never rejects: what is done is done, so a line that
 * cannot be written goes to the operator's log instead.
 */
export function createWriteAuditLog({ audit, clock, log }: WriteAuditLogDeps): TenantEventListener {
  return async ({ type: action, by, target, details }) => {
    const { tenantId, id: actor, requestId } = by;
    try {
      await audit.append({
        // A second line of what happens once has the id of the first, and is not written.
        ...(HAPPENS_ONCE.has(action) ? { _id: derivedId('aud', tenantId, action, target) } : {}),
        tenantId,
        createdAt: clock.now(),
        actor,
        action,
        target,
        requestId,
        details: { ...details },
      });
    } catch (error) {
      log.error(`The audit log lacks a line: ${action} of ${target} by ${actor}.`, { requestId, tenantId, error });
    }
  };
}
