import { Router } from 'express';
import type { Request } from 'express';

import { pageOf, parseListQuery, toListPage } from '../../../shared/contracts/list-page.ts';
import { ServiceError } from '../../../shared/errors/service-error.ts';
import type { ProviderRow } from '../../../shared/infra/mongo/rows.ts';
import type { ProviderRepository } from '../../../shared/infra/mongo/provider-repository.ts';
import type { TierRepository } from '../../../shared/infra/mongo/tier-repository.ts';
import type { Clock } from '../../../shared/lifecycle/clock.ts';
import { methodNotAllowed } from '../../middleware/error-handler.ts';
import { assertProviderName, parseProvider, PROVIDER_NAME } from './schema.ts';

export interface AdminProvidersDeps {
  providers: ProviderRepository;
  tiers: Pick<TierRepository, 'usersOf'>;
  clock: Clock;
}

/** The credential is never among the fields. */
function toResource(row: ProviderRow) {
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
export function createAdminProvidersRoute({ providers, tiers, clock }: AdminProvidersDeps): Router {
  const router = Router();

  router
    .route('/providers')
    .get(async (req, res) => {
      const query = parseListQuery(req.query);
      const rows = pageOf(await providers.all(), query, (row) => row._id);
      res.json(toListPage(rows, query.limit, toResource));
    })
    .all(methodNotAllowed('GET'));

  router
    .route('/providers/:name')
    .get(async (req, res) => {
      const provider = await providers.find(knownName(req));
      if (provider === undefined) throw unknown();
      res.json(toResource(provider));
    })
    .put(async (req, res) => {
      const { name } = req.params;
      assertProviderName(name);
      const { created, provider } = await providers.put(name, parseProvider(req.body), clock.now());
      res.status(created ? 201 : 200).json(toResource(provider));
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
      res.json({ id: name, object: 'provider', deleted: true });
    })
    .all(methodNotAllowed('GET', 'PUT', 'DELETE'));

  return router;
}
