import type { KeyMode } from '../../../shared/contracts/jobs.ts';
import type { Logger } from '../../../shared/infra/logging/logger.ts';
import type { AuditEntry, AuditRepository } from '../../../shared/infra/mongo/tenants/audit-repository.ts';
import type { Clock } from '../../../shared/lifecycle/clock.ts';
import type { WatchAccount } from '../../../shared/webhooks/account-watch.ts';
import type { EventSink, RaisedEvent } from '../../../shared/webhooks/event-sink.ts';

export interface TellingDeps {
  events: Pick<EventSink, 'tryPublish'>;
  watchAccount: WatchAccount;
  clock: Clock;
  log: Logger;
}

type Append = Pick<AuditRepository, 'append'>;

/**
 * Makes of an audit log one that also tells the tenant's receivers of what is noted in it, where they can ask for it.
 * What could not be noted is told all the same: it has happened.
 */
export type Telling = (audit: Append) => Append;

/** Acts that take credits away outside of settlement. */
const TAKING: ReadonlySet<string> = new Set(['credits.adjusted']);

function toEvents({ tenantId, action, target, requestId, details }: AuditEntry, now: number): RaisedEvent[] {
  switch (action) {
    case 'key.created': {
      // Both routes that make keys note these two.
      const { mode, scopes } = details as { mode: KeyMode; scopes: string[] };
      return [{ tenantId, type: action, cause: target, data: { key_id: target, mode, scopes }, now }];
    }
    case 'key.revoked':
      return [{ tenantId, type: action, cause: target, data: { key_id: target }, now }];
    case 'entity.deleted':
      // An entity can be made and deleted again.
      return [{ tenantId, type: action, cause: requestId, data: { entity_id: target }, now }];
    default:
      return [];
  }
}

export function createTelling({ events, watchAccount, clock, log }: TellingDeps): Telling {
  async function tell(entry: AuditEntry): Promise<void> {
    const now = clock.now();
    const told = toEvents(entry, now);
    try {
      if (TAKING.has(entry.action)) told.push(...(await watchAccount(entry.tenantId, now)));
    } catch (error) {
      log.error('Whether an adjustment passed a threshold is not known.', { tenantId: entry.tenantId, error });
    }
    if (told.length > 0) await events.tryPublish(told);
  }

  return (audit) => ({
    async append(entry) {
      try {
        await audit.append(entry);
      } finally {
        await tell(entry);
      }
    },
  });
}
