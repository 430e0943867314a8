import type { KeyMode } from '../../shared/contracts/jobs.ts';
import type { Logger } from '../../shared/infra/logging/logger.ts';
import type { AuditEntry } from '../../shared/infra/mongo/audit-repository.ts';
import type { Clock } from '../../shared/lifecycle/clock.ts';
import type { WatchAccount } from '../../shared/webhooks/account-watch.ts';
import type { EventSink, RaisedEvent } from '../../shared/webhooks/event-sink.ts';

export interface TellActsDeps {
  events: Pick<EventSink, 'tell'>;
  watchAccount: WatchAccount;
  clock: Clock;
  log: Logger;
}

/** Tells a tenant's receivers of an act that is noted in its audit log, if it is one they can ask for. Never rejects. */
export type TellAct = (entry: AuditEntry) => Promise<void>;

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

export function createTellActs({ events, watchAccount, clock, log }: TellActsDeps): TellAct {
  return async (entry) => {
    const now = clock.now();
    const told = toEvents(entry, now);
    try {
      if (entry.action === 'credits.adjusted') told.push(...(await watchAccount(entry.tenantId, now)));
    } catch (error) {
      log.error('Whether an adjustment passed a threshold is not known.', { tenantId: entry.tenantId, error });
    }
    if (told.length > 0) await events.tell(told);
  };
}
