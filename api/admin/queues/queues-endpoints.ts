import type { BullMQAdapter } from '@bull-board/api/bullMQAdapter';

import { QUEUE_NAMES } from '../../../shared/contracts/jobs.ts';
import { pageOf, toListPage } from '../../../shared/contracts/list-page.ts';
import type { QueueStatistics } from '../../../shared/requests/queue-store.ts';
import { fleetWanted, workersWanted } from '../../../shared/metrics/ingress-series.ts';
import type { Clock } from '../../../shared/lifecycle/clock.ts';
import { defineAdminEndpoint, ok, exampleList, json, listQuery } from '../../contract/endpoint.ts';
import {
  boolean,
  constant,
  id,
  integer,
  listOf,
  named,
  number,
  object,
  oneOf,
  pageSchema,
  text,
} from '../../contract/json-schema.ts';
import type { FieldsOf } from '../../contract/json-schema.ts';
import { PATH_PARAMETERS, found } from '../../contract/path-parameters.ts';

/** A BullMQ queue, named without importing bullmq, which only shared/queue may do. */
export type BullQueue = ConstructorParameters<typeof BullMQAdapter>[0];

/** The shard of a queue, taken from the hash tag of its prefix (see shared/redis/keyspace.ts), if it has one. */
export function shardOfQueue(queue: BullQueue): number | undefined {
  const [, shard] = /-(\d+)\}$/.exec(queue.opts.prefix ?? '') ?? [];
  return shard === undefined ? undefined : Number(shard);
}

const idOf = (queue: BullQueue) => `${shardOfQueue(queue) ?? 0}:${queue.name}`;

export interface QueuesDeps {
  queues: () => Promise<readonly BullQueue[]>;
  queueStatistics: QueueStatistics;
  workerConcurrency: number;
  clock: Clock;
}

const fields = {
  id: text('Shard and name.'),
  object: constant('queue'),
  queue: oneOf(QUEUE_NAMES),
  shard: integer(undefined, 0),
  waiting: integer(undefined, 0),
  waiting_by_tenant: listOf(
    object({ tenant_id: id('ten'), waiting: integer(undefined, 1) }),
    'The ten tenants with most requests in line; from a sample where more than 2,000 wait.',
  ),
  active: integer(undefined, 0),
  delayed: integer(undefined, 0),
  failed: integer(undefined, 0),
  oldest_age_seconds: integer('The age of the oldest of the jobs that are next.', 0),
  drain_rate_per_second: number('Jobs that leave the queue a second.'),
  workers_wanted: integer('Workers that would have a place for all that runs or waits in it.', 0),
  paused: boolean('An operator has paused it: requests are accepted and wait.'),
};

async function figuresOf(queue: BullQueue, { queueStatistics, workerConcurrency, clock }: QueuesDeps) {
  const now = clock.now();
  const shard = shardOfQueue(queue) ?? 0;
  const [counts, next, largest, drainRate, paused] = await Promise.all([
    queue.getJobCounts('waiting', 'prioritized', 'active', 'delayed', 'failed'),
    queue.getJobs(['waiting', 'prioritized'], 0, 0, true),
    queueStatistics.largestWaiting(shard, queue.name),
    queueStatistics.drainRatePerSecond(shard, queue.name, now),
    queue.isPaused(),
  ]);
  const load = {
    waiting: (counts['waiting'] ?? 0) + (counts['prioritized'] ?? 0),
    active: counts['active'] ?? 0,
    paused,
  };
  return {
    id: idOf(queue),
    object: 'queue',
    queue: queue.name,
    shard,
    ...load,
    waiting_by_tenant: largest.map(({ tenantId, waiting }) => ({ tenant_id: tenantId, waiting })),
    delayed: counts['delayed'] ?? 0,
    failed: counts['failed'] ?? 0,
    oldest_age_seconds: Math.max(0, ...next.map(({ timestamp }) => Math.floor((now - timestamp) / 1000))),
    drain_rate_per_second: drainRate,
    workers_wanted: workersWanted([load], workerConcurrency),
  } satisfies FieldsOf<typeof fields>;
}

export async function readQueues(deps: QueuesDeps) {
  return Promise.all((await deps.queues()).map((queue) => figuresOf(queue, deps)));
}

const EXAMPLE = {
  id: `0:${QUEUE_NAMES[0]}`,
  object: 'queue',
  queue: QUEUE_NAMES[0],
  shard: 0,
  waiting: 12,
  waiting_by_tenant: [
    { tenant_id: PATH_PARAMETERS.tenantId.example, waiting: 11 },
    { tenant_id: `${PATH_PARAMETERS.tenantId.example.slice(0, -1)}2`, waiting: 1 },
  ],
  active: 40,
  delayed: 0,
  failed: 0,
  oldest_age_seconds: 1,
  drain_rate_per_second: 31.5,
  workers_wanted: 1,
  paused: false,
};

const queueSchema = named('Queue', object(fields));
const ofAll = { workers_wanted: integer('The same for all queues together; at least 1.', 1) };

function defineSwitch(
  path: '/queues/:queue/pause' | '/queues/:queue/resume',
  { act, ...about }: { summary: string; description: string; act: (queue: BullQueue) => Promise<void> },
) {
  const paused = path === '/queues/:queue/pause';
  return defineAdminEndpoint({
    method: 'POST',
    path,
    tag: 'Queues',
    ...about,
    answers: { 200: json('The queue.', queueSchema) },
    examples: { now: { status: 200, answer: { ...EXAMPLE, paused } } },
    async handle({ params }, deps: QueuesDeps) {
      const queue = found(
        (await deps.queues()).find((each) => idOf(each) === params.queue),
        'queue',
      );
      await act(queue);
      return ok(await figuresOf(queue, deps));
    },
  });
}

/** Every queue of every shard (docs/spec.md#administration). */
export const queuesEndpoints = {
  listQueues: defineAdminEndpoint({
    method: 'GET',
    path: '/queues',
    tag: 'Queues',
    summary: 'List queues',
    query: listQuery,
    answers: { 200: json('A page of queues.', named('QueueList', pageSchema(queueSchema, ofAll))) },
    examples: { all: { query: { order: 'asc' }, status: 200, answer: exampleList(EXAMPLE, { workers_wanted: 1 }) } },
    async handle({ query }, deps: QueuesDeps) {
      const all = await readQueues(deps);
      const page = pageOf(all, query, ({ id }) => id);
      return ok({
        ...toListPage(page, query.limit, (queue) => queue),
        workers_wanted: fleetWanted(all, deps.workerConcurrency),
      });
    },
  }),
  pauseQueue: defineSwitch('/queues/:queue/pause', {
    summary: 'Pause a queue',
    description: 'Requests are accepted and wait, until they are resumed or end with `timeout`. Needs no body.',
    act: (queue) => queue.pause(),
  }),
  resumeQueue: defineSwitch('/queues/:queue/resume', {
    summary: 'Resume a paused queue',
    description: 'Needs no body.',
    act: (queue) => queue.resume(),
  }),
};
