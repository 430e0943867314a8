import { Router } from 'express';

import type { ShardDirectory } from '../../../shared/infra/mongo/tenants/tenant-repository.ts';
import type { LastDrift } from '../../../shared/infra/redis/accounts/last-drift.ts';
import type { Outbox } from '../../../shared/infra/redis/requests/outbox.ts';
import { methodNotAllowed } from '../../http/error-handler.ts';

export interface AdminSettlementDeps {
  shardDirectory: ShardDirectory;
  outbox: Pick<Outbox, 'backlog' | 'requeue'>;
  lastDrift: Pick<LastDrift, 'read'>;
}

const sumOf = (amounts: readonly number[]) => amounts.reduce((sum, amount) => sum + amount, 0);

/** `/admin/v1/settlement`: how far settlement is behind in all shards, and another try for what could not be booked. */
export function createAdminSettlementRoute({ shardDirectory, outbox, lastDrift }: AdminSettlementDeps): Router {
  const router = Router();

  router
    .route('/settlement')
    .get(async (_req, res) => {
      const shards = await shardDirectory.list();
      const backlogs = await Promise.all(shards.map((shard) => outbox.backlog(shard)));
      const drifts = (await Promise.all(shards.map((shard) => lastDrift.read(shard)))).filter(
        (each) => each !== undefined,
      );
      res.json({
        object: 'settlement',
        outbox: sumOf(backlogs.map((backlog) => backlog.outbox)),
        dead_letters: sumOf(backlogs.map(({ deadLetters }) => deadLetters)),
        lag_seconds: Math.floor(Math.max(0, ...backlogs.map(({ lagSeconds }) => lagSeconds))),
        // Of the last reconciliation, with credits, tokens and requests in one sum: anything but 0 needs an operator.
        drift: drifts.length === 0 ? null : sumOf(drifts.flatMap((drift) => Object.values(drift))),
      });
    })
    .all(methodNotAllowed('GET'));

  router
    .route('/settlement/requeue')
    .post(async (_req, res) => {
      const done = await Promise.all((await shardDirectory.list()).map((shard) => outbox.requeue(shard)));
      res.json({
        object: 'settlement.requeue',
        requeued: sumOf(done.map(({ requeued }) => requeued)),
        // Dead letters that cannot be read stay.
        dead_letters: sumOf(done.map(({ left }) => left)),
      });
    })
    .all(methodNotAllowed('POST'));

  return router;
}
