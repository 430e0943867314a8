import type { Router } from 'express';

import { parseListQuery, toListPage } from '../../../shared/contracts/list-page.ts';
import { ServiceError } from '../../../shared/errors/service-error.ts';
import type { UsageRepository } from '../../../shared/infra/mongo/accounts/usage-repository.ts';
import type { Clock } from '../../../shared/lifecycle/clock.ts';
import { principalOf } from '../../http/request-context.ts';
import type { ServeEndpoints } from '../../http/serve-endpoints.ts';
import { DIMENSIONS, parseUsageFilter, parseUsageQuery } from './parse-usage-query.ts';
import { toUsagePage, toUsageRequest } from './resource.ts';

export interface UsageRouteDeps {
  serve: ServeEndpoints;
  usage: UsageRepository;
  clock: Clock;
}

/** A page with more sums would take megabytes. */
const RESULTS_MAX = 10_000;

/** `GET /usage` and `GET /usage/requests` (docs/spec/contract.md section 6). */
export function createUsageRoute({ serve, usage, clock }: UsageRouteDeps): Router {
  return serve({
    getUsage: async (req, res) => {
      const page = parseUsageQuery(req.query, clock.now());
      const { width, startMs, pageEndMs: endMs, filter } = page;
      const groupBy = page.groupBy.map((group) => DIMENSIONS[group]);
      const query = { width, startMs, endMs, groupBy, filter, limit: RESULTS_MAX };
      const sums = await usage.sums(principalOf(res).tenantId, query);
      if (sums.length > RESULTS_MAX) {
        throw new ServiceError(
          'invalid_request',
          `This page has more than ${RESULTS_MAX} results; send a lower \`limit\`, a filter or fewer \`group_by\`.`,
          { param: 'limit' },
        );
      }
      res.json(toUsagePage(page, sums));
    },

    listUsageRequests: async (req, res) => {
      const query = parseListQuery(req.query);
      const rows = await usage.requests(principalOf(res).tenantId, parseUsageFilter(req.query), query);
      res.json(toListPage(rows, query.limit, toUsageRequest));
    },
  });
}
