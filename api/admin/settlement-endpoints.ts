import type { ShardDirectory } from '../../shared/mongo/tenants/tenant-repository.ts';
import type { LastDrift } from '../../shared/redis/stores/account-store.ts';
import type { Outbox } from '../../shared/requests/outbox.ts';
import { defineAdminEndpoint, ok, json } from '../contract/endpoint.ts';
import { constant, integer, named, nullable, number, object } from '../contract/json-schema.ts';

export interface SettlementDeps {
  shardDirectory: ShardDirectory;
  outbox: Outbox;
  lastDrift: LastDrift;
}

const sumOf = (amounts: readonly number[]) => amounts.reduce((sum, amount) => sum + amount, 0);

const backlogSchema = named(
  'Settlement',
  object({
    object: constant('settlement'),
    outbox: integer('Finished requests that are not booked yet.', 0),
    dead_letters: integer('Records that could not be booked and wait for another try.', 0),
    lag_seconds: integer('Age of the oldest record that is not booked.', 0),
    drift: nullable(number('What the last reconciliation could not repair; `null` before the first one.')),
  }),
);
const requeueSchema = named(
  'SettlementRequeue',
  object({
    object: constant('settlement.requeue'),
    requeued: integer('Dead letters that are back in the outbox.', 0),
    dead_letters: integer('Dead letters that cannot be read and stay.', 0),
  }),
);

const getSettlement = defineAdminEndpoint({
  method: 'GET',
  path: '/settlement',
  tag: 'Settlement',
  summary: 'Retrieve the settlement backlog',
  description: 'Sums over all shards.',
  answers: { 200: json('The backlog.', backlogSchema) },
  examples: {
    settled: { status: 200, answer: { object: 'settlement', outbox: 0, dead_letters: 0, lag_seconds: 0, drift: 0 } },
  },
  async handle(_call, { shardDirectory, outbox, lastDrift }: SettlementDeps) {
    const shards = await shardDirectory.list();
    const backlogs = await Promise.all(shards.map((shard) => outbox.backlog(shard)));
    const drifts = (await Promise.all(shards.map((shard) => lastDrift.read(shard)))).filter(
      (each) => each !== undefined,
    );
    return ok({
      object: 'settlement',
      outbox: sumOf(backlogs.map((backlog) => backlog.outbox)),
      dead_letters: sumOf(backlogs.map(({ deadLetters }) => deadLetters)),
      lag_seconds: Math.floor(Math.max(0, ...backlogs.map(({ lagSeconds }) => lagSeconds))),
      // A sum of credits, tokens and requests: anything but 0 needs an operator.
      drift: drifts.length === 0 ? null : sumOf(drifts.flatMap((drift) => Object.values(drift))),
    });
  },
});

const requeueSettlement = defineAdminEndpoint({
  method: 'POST',
  path: '/settlement/requeue',
  tag: 'Settlement',
  summary: 'Requeue dead letters',
  description: 'Settlement tries them again. Safe to repeat; needs no body.',
  answers: { 200: json('What was requeued.', requeueSchema) },
  examples: { requeue: { status: 200, answer: { object: 'settlement.requeue', requeued: 0, dead_letters: 0 } } },
  async handle(_call, { shardDirectory, outbox }: SettlementDeps) {
    const done = await Promise.all((await shardDirectory.list()).map((shard) => outbox.requeue(shard)));
    return ok({
      object: 'settlement.requeue',
      requeued: sumOf(done.map(({ requeued }) => requeued)),
      dead_letters: sumOf(done.map(({ left }) => left)),
    });
  },
});

/** The lag of settlement, and a retry for dead letters (docs/spec.md#settlement). */
export const settlementEndpoints = { getSettlement, requeueSettlement };
