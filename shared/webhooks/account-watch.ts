import { ACCOUNT_EVENT_TYPES, accountEvents } from '../domain/webhooks/account-events.ts';
import type { AccountStates } from '../infra/mongo/accounts/account-repository.ts';
import type { EventSink, RaisedEvent } from './event-sink.ts';

/** What a tenant is to be told of its credits and budget after they have changed; nothing where it has not asked. */
export type WatchAccount = (tenantId: string, now: number) => Promise<RaisedEvent[]>;

/** Longer than credits of one grant or purchase may be low: so long, a cause is known to have been told. */
const REMEMBERED_MS = 400 * 24 * 3_600_000;

export function createWatchAccount(deps: { events: Pick<EventSink, 'wants'>; accounts: AccountStates }): WatchAccount {
  return async (tenantId, now) => {
    if (!(await deps.events.wants(tenantId, ACCOUNT_EVENT_TYPES))) return [];
    const state = await deps.accounts.read(tenantId);
    if (state === undefined) return [];
    return accountEvents(state.account, state.monthlyTokenBudget, now).map((event) => ({
      ...event,
      tenantId,
      now,
      keptUntil: now + REMEMBERED_MS,
    }));
  };
}
