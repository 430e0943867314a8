import { Router } from 'express';
import type { Request } from 'express';

import { TIERS } from '../../../shared/contracts/chat-request.ts';
import type { Tier } from '../../../shared/contracts/chat-request.ts';
import { pageOf, parseListQuery, toListPage } from '../../../shared/contracts/list-page.ts';
import { ServiceError } from '../../../shared/errors/service-error.ts';
import type { ProviderRepository } from '../../../shared/infra/mongo/routing/provider-repository.ts';
import type { TierContent, TierRepository } from '../../../shared/infra/mongo/routing/tier-repository.ts';
import type { Clock } from '../../../shared/lifecycle/clock.ts';
import { methodNotAllowed } from '../../http/error-handler.ts';
import { toTierResource, toTierVersionResource } from './resource.ts';
import { parseRollback, parseTier } from './schema.ts';

export interface AdminTiersDeps {
  tiers: TierRepository;
  providers: Pick<ProviderRepository, 'all'>;
  clock: Clock;
}

function tierOf(req: Request): Tier {
  const tier = TIERS.find((known) => known === req.params['tier']);
  if (tier === undefined)
    throw new ServiceError('not_found', `There is no such tier; the tiers are ${TIERS.join(', ')}.`);
  return tier;
}

/** `/admin/v1/tiers`. */
export function createAdminTiersRoute({ tiers, providers, clock }: AdminTiersDeps): Router {
  /** Index of the first target whose provider does not exist. */
  async function unknownProviderIn({ targets }: TierContent): Promise<number> {
    const names = new Set((await providers.all()).map((row) => row._id));
    return targets.findIndex((target) => !names.has(target.provider));
  }

  const router = Router();
  router
    .route('/tiers')
    .get(async (req, res) => {
      const query = parseListQuery(req.query);
      const all = await Promise.all(TIERS.map(async (tier) => toTierResource(tier, await tiers.current(tier))));
      res.json(
        toListPage(
          pageOf(all, query, (tier) => tier.id),
          query.limit,
          (tier) => tier,
        ),
      );
    })
    .all(methodNotAllowed('GET'));

  router
    .route('/tiers/:tier')
    .get(async (req, res) => {
      const tier = tierOf(req);
      res.json(toTierResource(tier, await tiers.current(tier)));
    })
    .put(async (req, res) => {
      const tier = tierOf(req);
      const content = parseTier(req.body);
      const index = await unknownProviderIn(content);
      if (index !== -1) {
        const param = `targets[${index}].provider`;
        throw new ServiceError('invalid_request', `\`${param}\` must be the name of a provider.`, { param });
      }
      res.json(toTierResource(tier, await tiers.put(tier, content, clock.now())));
    })
    .all(methodNotAllowed('GET', 'PUT'));

  router
    .route('/tiers/:tier/versions')
    .get(async (req, res) => {
      const query = parseListQuery(req.query);
      const rows = await tiers.versions(tierOf(req), query);
      res.json(toListPage(rows, query.limit, toTierVersionResource));
    })
    .all(methodNotAllowed('GET'));

  router
    .route('/tiers/:tier/rollback')
    .post(async (req, res) => {
      const tier = tierOf(req);
      const old = await tiers.version(tier, parseRollback(req.body));
      if (old === undefined) throw new ServiceError('not_found', 'The tier has no such version.', { param: 'version' });
      const { promptRateMicro, completionRateMicro, targets } = old;
      const index = await unknownProviderIn(old);
      if (index !== -1) {
        throw new ServiceError(
          'conflict',
          `Version ${old.version} uses the provider ${String(targets[index]?.provider)}, which no longer exists; create it first.`,
        );
      }
      const row = await tiers.put(tier, { promptRateMicro, completionRateMicro, targets }, clock.now());
      res.json(toTierResource(tier, row));
    })
    .all(methodNotAllowed('POST'));

  return router;
}
