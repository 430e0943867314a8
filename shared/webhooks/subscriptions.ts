import type { SearchedSpace } from '../contracts/space.ts';
import type { WebhookEventType } from '../contracts/webhook-events.ts';
import type { Subscriber, WebhookRepository } from '../mongo/webhooks/webhook-repository.ts';
import type { Clock } from '../lifecycle/clock.ts';
import { putNewest } from '../domain/bounded-map.ts';

/** Knows what each tenant's active webhooks listen for; for most tenants that is nothing, and known without a look-up. */
export type Subscriptions = ReturnType<typeof createSubscriptions>;

type Loaded = ReadonlyMap<WebhookEventType, readonly Subscriber[]>;

/** Changes are announced; this is for an announcement that was lost. */
const KEPT_MS = 30_000;
const TENANTS_MAX = 20_000;
const NONE: readonly Subscriber[] = [];

export function createSubscriptions({
  webhooks,
  clock,
}: {
  webhooks: Pick<WebhookRepository, 'subscriptions'>;
  clock: Clock;
}) {
  const known = new Map<string, { loaded: Promise<Loaded>; until: number }>();

  /** Where MongoDB is away, what was known before is still the best guess. */
  function load(tenantId: string, before: Promise<Loaded> | undefined): Promise<Loaded> {
    const fresh: Promise<Loaded> = webhooks.subscriptions(tenantId);
    const loaded = before === undefined ? fresh : fresh.catch(() => before);
    const entry = { loaded, until: clock.now() + KEPT_MS };
    putNewest(known, tenantId, entry, TENANTS_MAX);
    entry.loaded.catch(() => {
      if (known.get(tenantId) === entry) known.delete(tenantId);
    });
    return entry.loaded;
  }

  return {
    /** The webhooks of a space that want a type of event. */
    async of({ tenantId, mode }: SearchedSpace, type: WebhookEventType): Promise<readonly Subscriber[]> {
      const entry = known.get(tenantId);
      const loaded = await (entry !== undefined && entry.until > clock.now()
        ? entry.loaded
        : load(tenantId, entry?.loaded));
      const found = loaded.get(type) ?? NONE;
      return mode === 'any' ? found : found.filter((subscriber) => subscriber.mode === mode);
    },
    /** Called with the id of whatever has changed. */
    forget(tenantId: string): void {
      known.delete(tenantId);
    },
    forgetAll(): void {
      known.clear();
    },
  };
}
