import { ACCOUNT_EVENT_TYPES, accountEvents } from '../domain/webhooks/account-events.ts';
import type { AccountStates } from '../infra/mongo/accounts/account-repository.ts';
import type { EventSink, WebhookEvent } from './event-sink.ts';

/** Finds the events that a change of a tenant's credits or budget calls for; none where no webhook subscribes. */
export type WatchAccount = (tenantId: string, now: number) => Promise<WebhookEvent[]>;

/** How long a cause counts as published: longer than the credits of one grant or purchase may be low. */
const REMEMBERED_MS = 400 * 24 * 3_600_000;

export function createWatchAccount(deps: { events: Pick<EventSink, 'wants'>; accounts: AccountStates }): WatchAccount {
  return async (tenantId, now) => {
    if (!(await deps.events.wants({ tenantId, mode: 'live' }, ACCOUNT_EVENT_TYPES))) return [];
    const state = await deps.accounts.read(tenantId);
    if (state === undefined) return [];
    return accountEvents(state.account, state.monthlyTokenBudget, now).map((event) => ({
      ...event,
      tenantId,
      // Test keys cost nothing.
      mode: 'live',
      now,
      keptUntil: now + REMEMBERED_MS,
    }));
  };
}
