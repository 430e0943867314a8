import { Router } from 'express';

import { pageOf, parseListQuery, toListPage } from '../../../shared/contracts/list-page.ts';
import { afterReset } from '../../../shared/domain/routing/breaker.ts';
import { ServiceError } from '../../../shared/errors/service-error.ts';
import type { ProviderRepository } from '../../../shared/infra/mongo/routing/provider-repository.ts';
import type { BreakerStore } from '../../../shared/infra/redis/routing/breaker-store.ts';
import { methodNotAllowed } from '../../http/error-handler.ts';
import { PROVIDER_NAME } from '../providers/schema.ts';
import { toBreakerEventResource, toBreakerResource } from './resource.ts';

export interface AdminBreakersDeps {
  providers: Pick<ProviderRepository, 'all' | 'find'>;
  breakers: Pick<BreakerStore, 'readAll' | 'change' | 'events'>;
}

/** `/admin/v1/breakers`: the circuit breaker of every provider, as the fleet shares it. */
export function createAdminBreakersRoute({ providers, breakers }: AdminBreakersDeps): Router {
  const router = Router();

  router
    .route('/breakers')
    .get(async (req, res) => {
      const query = parseListQuery(req.query);
      const [rows, snapshot] = await Promise.all([providers.all(), breakers.readAll()]);
      const page = pageOf(rows, query, (row) => row._id);
      res.json(
        toListPage(page, query.limit, (row) => toBreakerResource(row, snapshot.breakers.get(row._id), snapshot.now)),
      );
    })
    .all(methodNotAllowed('GET'));

  router
    .route('/breakers/events')
    .get(async (req, res) => {
      const query = parseListQuery(req.query);
      res.json(toListPage(await breakers.events(query), query.limit, toBreakerEventResource));
    })
    .all(methodNotAllowed('GET'));

  router
    .route('/breakers/:provider/reset')
    .post(async (req, res) => {
      const { provider } = req.params;
      const row = PROVIDER_NAME.test(provider) ? await providers.find(provider) : undefined;
      if (row === undefined) throw new ServiceError('not_found', 'There is no provider with this name.');
      const { breaker, now } = await breakers.change(provider, afterReset);
      res.json(toBreakerResource(row, breaker, now));
    })
    .all(methodNotAllowed('POST'));

  return router;
}
