import { Router } from 'express';

import { pageOf, parseListQuery, toListPage } from '../../../shared/contracts/list-page.ts';
import type { LaneStatistics } from '../../../shared/infra/redis/requests/lane-store.ts';
import type { Clock } from '../../../shared/lifecycle/clock.ts';
import { methodNotAllowed } from '../../http/error-handler.ts';
import { shardOfQueue } from './lane.ts';
import type { LaneQueue } from './lane.ts';

export interface AdminQueuesDeps {
  queues: readonly LaneQueue[];
  laneStatistics: LaneStatistics;
  clock: Clock;
}

async function figuresOf(queue: LaneQueue, laneStatistics: LaneStatistics, now: number) {
  const shard = shardOfQueue(queue);
  const [counts, [oldest], drainRate] = await Promise.all([
    queue.getJobCounts('waiting', 'prioritized', 'active', 'delayed', 'failed'),
    queue.getJobs(['waiting'], 0, 0, true),
    laneStatistics.drainRatePerSecond(shard, queue.name, now),
  ]);
  return {
    id: `${shard}:${queue.name}`,
    object: 'queue',
    lane: queue.name,
    shard,
    waiting: (counts['waiting'] ?? 0) + (counts['prioritized'] ?? 0),
    active: counts['active'] ?? 0,
    delayed: counts['delayed'] ?? 0,
    failed: counts['failed'] ?? 0,
    oldest_age_seconds: oldest === undefined ? 0 : Math.max(0, Math.floor((now - oldest.timestamp) / 1000)),
    drain_rate_per_second: drainRate,
  };
}

/** `GET /admin/v1/queues`: every lane of every shard. */
export function createAdminQueuesRoute({ queues, laneStatistics, clock }: AdminQueuesDeps): Router {
  const router = Router();
  router
    .route('/queues')
    .get(async (req, res) => {
      const query = parseListQuery(req.query);
      const all = await Promise.all(queues.map((queue) => figuresOf(queue, laneStatistics, clock.now())));
      const page = pageOf(all, query, (lane) => lane.id);
      res.json(toListPage(page, query.limit, (lane) => lane));
    })
    .all(methodNotAllowed('GET'));
  return router;
}
