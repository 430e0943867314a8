import type { Logger } from '../../shared/infra/logging/logger.ts';
import type { CredentialRotation } from '../../shared/infra/mongo/administration/rotate-credentials.ts';
import type { ProviderRepository } from '../../shared/infra/mongo/routing/provider-repository.ts';
import type { TierRepository } from '../../shared/infra/mongo/routing/tier-repository.ts';
import type { RecentWrites } from '../../shared/infra/redis/recent-writes.ts';
import type { RoutingMark } from '../../shared/infra/redis/routing/routing-mark.ts';

/** All that writes tiers and providers. */
interface RoutingWriters {
  providers: ProviderRepository;
  tiers: TierRepository;
  credentials: CredentialRotation;
}

export interface MarkDeps {
  mark: Pick<RoutingMark, 'renew'>;
  recentWrites: Pick<RecentWrites, 'note'>;
  log: Pick<Logger, 'warn'>;
}

/**
 * The same writers, which renew the mark of the routes after each change, so that every process reads them anew. A change
 * does not fail where Redis does not take the mark.
 */
export function withMarkedRoutes(writers: RoutingWriters, { mark, recentWrites, log }: MarkDeps): RoutingWriters {
  async function renew(): Promise<void> {
    recentWrites.note(() => mark.renew(), { reason: 'a change of routes' });
    await mark.renew().catch((error: unknown) => {
      log.warn('A change of routes could not be marked in Redis; processes that reach Redis follow within 5 s.', {
        error,
      });
    });
  }

  /** One that has failed may have changed something all the same: MongoDB may have done it without being heard. */
  async function marked<Result>(change: Promise<Result>): Promise<Result> {
    try {
      return await change;
    } finally {
      await renew();
    }
  }

  const { providers, tiers, credentials } = writers;
  return {
    providers: { ...providers, put: (...call) => marked(providers.put(...call)) },
    tiers: {
      ...tiers,
      put: (...call) => marked(tiers.put(...call)),
      removeProvider: (...call) => marked(tiers.removeProvider(...call)),
    },
    credentials: { ...credentials, rotate: () => marked(credentials.rotate()) },
  };
}
