import { Router } from 'express';

import type { PriceList, PriceRepository } from '../../../shared/infra/mongo/accounts/price-repository.ts';
import type { Clock } from '../../../shared/lifecycle/clock.ts';
import { methodNotAllowed } from '../../http/error-handler.ts';
import { toPackageResource } from '../../resources/billing/resource.ts';
import { parsePriceList } from './schema.ts';

export interface AdminPackagesDeps {
  prices: PriceRepository;
  clock: Clock;
}

/** Packages that are sold no more are there, too. */
function toPriceListResource({ currency, pricePerMillion, packages, updatedAt }: PriceList) {
  return {
    object: 'price_list',
    currency,
    price_per_million_credits: pricePerMillion,
    packages: packages.map((row) => toPackageResource(row, currency)),
    updated_at: updatedAt === undefined ? null : Math.floor(updatedAt / 1000),
  };
}

/** `/admin/v1/packages`: the whole price list at once. Checkouts keep the price at which they were made. */
export function createAdminPackagesRoute({ prices, clock }: AdminPackagesDeps): Router {
  const router = Router();
  router
    .route('/packages')
    .get(async (_req, res) => {
      res.json(toPriceListResource(await prices.current()));
    })
    .put(async (req, res) => {
      res.json(toPriceListResource(await prices.put(parsePriceList(req.body), clock.now())));
    })
    .all(methodNotAllowed('GET', 'PUT'));
  return router;
}
