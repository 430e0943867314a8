import type { Request, Response, Router } from 'express';

import { parseListQuery, toListPage } from '../../../shared/contracts/list-page.ts';
import { ServiceError } from '../../../shared/errors/service-error.ts';
import type { BatchRepository } from '../../../shared/infra/mongo/batches/batch-repository.ts';
import type { Clock } from '../../../shared/lifecycle/clock.ts';
import type { AuditTrail } from '../audit-log/audit-trail.ts';
import { startReceived } from './receive-batch.ts';
import { principalOf } from '../../http/request-context.ts';
import type { ServeEndpoints } from '../../http/serve-endpoints.ts';
import { DRAIN_MS } from '../../relay/forward.ts';
import type { RelayTimes } from '../../relay/forward.ts';
import { pathId } from '../../contract/path-id.ts';
import { toBatchResource } from './resource.ts';
import { sendResults } from './results.ts';

export interface BatchesRouteDeps {
  serve: ServeEndpoints;
  batches: BatchRepository;
  auditTrail: AuditTrail;
  relayTimes: RelayTimes;
  clock: Clock;
}

function found<T>(value: T | undefined): T {
  if (value === undefined) throw new ServiceError('not_found', 'There is no batch with this id.');
  return value;
}

/** `/batches` (docs/spec/contract.md section 3). */
export function createBatchesRoute({ serve, batches, auditTrail, relayTimes, clock }: BatchesRouteDeps): Router {
  async function find(req: Request, res: Response) {
    return found(await batches.find(principalOf(res).tenantId, pathId(req, 'batchId', 'batch')));
  }

  return serve({
    createBatch: async (_req, res) => {
      const row = await startReceived(res);
      await auditTrail.byKey(res, {
        action: 'batch.created',
        target: row._id,
        details: { requests: row.total },
        isOnce: true,
      });
      res.setHeader('Location', `/platform/v1/batches/${row._id}`);
      res.status(202).json(toBatchResource(row));
    },

    listBatches: async (req, res) => {
      const query = parseListQuery(req.query);
      const rows = await batches.list(principalOf(res).tenantId, query);
      res.json(toListPage(rows, query.limit, toBatchResource));
    },

    getBatch: async (req, res) => {
      res.json(toBatchResource(await find(req, res)));
    },

    cancelBatch: async (req, res) => {
      const batchId = pathId(req, 'batchId', 'batch');
      const { batch, isChanged } = found(await batches.cancel(principalOf(res).tenantId, batchId, clock.now()));
      if (isChanged) await auditTrail.byKey(res, { action: 'batch.cancelled', target: batchId });
      res.json(toBatchResource(batch));
    },

    getBatchResults: async (req, res) => {
      await sendResults(res, await find(req, res), { batches, drainMs: relayTimes.drainMs ?? DRAIN_MS });
    },
  });
}
