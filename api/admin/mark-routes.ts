import type { Logger } from '../../shared/infra/logging/logger.ts';
import type { CredentialRotation } from '../../shared/infra/mongo/administration/rotate-credentials.ts';
import type { ProviderRepository } from '../../shared/infra/mongo/routing/provider-repository.ts';
import type { TierRepository } from '../../shared/infra/mongo/routing/tier-repository.ts';
import type { RecentWrites } from '../../shared/infra/redis/recent-writes.ts';
import type { RoutingMark } from '../../shared/infra/redis/routing/routing-mark.ts';

/** Everything that writes tiers and providers. */
interface RoutingWriters {
  providers: ProviderRepository;
  tiers: TierRepository;
  credentials: CredentialRotation;
}

export interface MarkDeps {
  mark: Pick<RoutingMark, 'renew'>;
  recentWrites: Pick<RecentWrites, 'perform'>;
  log: Pick<Logger, 'warn'>;
}

/**
 * Wraps the writers so that each change also renews the routes' mark, whereupon every process reads the routes again. A
 * change does not fail if Redis cannot take the mark.
 */
export function withMarkedRoutes(writers: RoutingWriters, { mark, recentWrites, log }: MarkDeps): RoutingWriters {
  async function renew(): Promise<void> {
    try {
      await recentWrites.perform(() => mark.renew(), { reason: 'a change of routes' });
    } catch (error) {
      log.warn('A change of routes could not be marked in Redis; processes that reach Redis follow within 5 s.', {
        error,
      });
    }
  }

  /** The mark is also renewed after a failed change: MongoDB may have made it and only the answer was lost. */
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
