import { Router } from 'express';
import type { Request } from 'express';

import { pageOf, parseListQuery, toListPage } from '../../../shared/contracts/list-page.ts';
import { DEFAULT_BREAKER } from '../../../shared/domain/routing/breaker.ts';
import { ServiceError } from '../../../shared/errors/service-error.ts';
import type { ProviderRow } from '../../../shared/infra/mongo/routing/provider-repository.ts';
import type { ProviderRepository } from '../../../shared/infra/mongo/routing/provider-repository.ts';
import type { TierRepository } from '../../../shared/infra/mongo/routing/tier-repository.ts';
import type { BreakerSnapshot, BreakerStore } from '../../../shared/infra/redis/routing/breaker-store.ts';
import type { Clock } from '../../../shared/lifecycle/clock.ts';
import { methodNotAllowed } from '../../http/error-handler.ts';
import { assertProviderName, parseProvider, PROVIDER_NAME } from './schema.ts';

export interface AdminProvidersDeps {
  providers: ProviderRepository;
  tiers: Pick<TierRepository, 'usersOf'>;
  breakers: Pick<BreakerStore, 'readAll' | 'forget'>;
  clock: Clock;
}

/** The credential is never among the fields. */
function toResource(row: ProviderRow, breakers: BreakerSnapshot | undefined) {
  const settings = row.breaker ?? DEFAULT_BREAKER;
  return {
    id: row._id,
    object: 'provider',
    created_at: Math.floor(row.createdAt / 1000),
    name: row._id,
    kind: row.kind,
    base_url: row.baseUrl,
    has_api_key: row.encryptedApiKey !== undefined,
    timeout_ms: row.timeoutMs,
    first_token_timeout_ms: row.firstTokenTimeoutMs,
    max_retries: row.maxRetries,
    breaker: {
      window_ms: settings.windowMs,
      min_attempts: settings.minAttempts,
      failure_ratio: settings.failureRatio,
      open_ms: settings.openMs,
      max_open_ms: settings.maxOpenMs,
    },
    breaker_state: breakers === undefined ? null : (breakers.breakers.get(row._id)?.state ?? 'closed'),
    updated_at: Math.floor(row.updatedAt / 1000),
  };
}

const unknown = () => new ServiceError('not_found', 'There is no provider with this name.');

function knownName(req: Request): string {
  const { name } = req.params;
  if (typeof name !== 'string' || !PROVIDER_NAME.test(name)) throw unknown();
  return name;
}

/** `/admin/v1/providers`. */
export function createAdminProvidersRoute({ providers, tiers, breakers, clock }: AdminProvidersDeps): Router {
  /** Providers can be administered while Redis is away; the state of their breakers is then unknown. */
  const states = () => breakers.readAll().catch(() => undefined);

  const router = Router();

  router
    .route('/providers')
    .get(async (req, res) => {
      const query = parseListQuery(req.query);
      const rows = pageOf(await providers.all(), query, (row) => row._id);
      const snapshot = await states();
      res.json(toListPage(rows, query.limit, (row) => toResource(row, snapshot)));
    })
    .all(methodNotAllowed('GET'));

  router
    .route('/providers/:name')
    .get(async (req, res) => {
      const provider = await providers.find(knownName(req));
      if (provider === undefined) throw unknown();
      res.json(toResource(provider, await states()));
    })
    .put(async (req, res) => {
      const { name } = req.params;
      assertProviderName(name);
      const { created, provider } = await providers.put(name, parseProvider(req.body), clock.now());
      res.status(created ? 201 : 200).json(toResource(provider, await states()));
    })
    .delete(async (req, res) => {
      const name = knownName(req);
      const users = await tiers.usersOf(name);
      if (users.length > 0) {
        throw new ServiceError(
          'conflict',
          `The provider is a target of ${users.join(' and ')}; take it out of the targets first.`,
        );
      }
      if (!(await providers.remove(name))) throw unknown();
      // A provider that gets this name later starts with a closed breaker; one that is left behind heals by its probes.
      await breakers.forget(name).catch(() => undefined);
      res.json({ id: name, object: 'provider', deleted: true });
    })
    .all(methodNotAllowed('GET', 'PUT', 'DELETE'));

  return router;
}
