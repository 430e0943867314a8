import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import type { Request, Response } from 'express';

import { storeFault } from '../../../api/http/error-handler.ts';
import { connectMongo } from '../../../shared/mongo/connection.ts';
import type { MongoConnection } from '../../../shared/mongo/connection.ts';
import { openQueue } from '../../../shared/queue/queues.ts';
import { createRedis } from '../../../shared/redis/connection.ts';
import type { RedisClient } from '../../../shared/redis/connection.ts';
import { openTcpProxy } from '../../support/tcp-proxy.ts';
import type { TcpProxy } from '../../support/tcp-proxy.ts';
import { mongoUri, openTestRedis, redisUrl, uniqueName } from '../../support/stores.ts';
import { waitFor } from '../../support/wait-for.ts';

/** As long as what was sent before a cut may be on its way. */
const ON_ITS_WAY_MS = 100;
const pause = () => new Promise((resolve) => setTimeout(resolve, ON_ITS_WAY_MS));

let proxy: TcpProxy;

/** Each error that `calls` ended with, by what a caller would get for it; a call that was answered has none. */
async function faultsOf(calls: readonly Promise<unknown>[]): Promise<unknown[]> {
  const outcomes = await Promise.allSettled(calls);
  return outcomes.flatMap((outcome) => {
    if (outcome.status === 'fulfilled') return errorsWithin(outcome.value);
    return [outcome.reason as unknown];
  });
}

/** A pipeline answers with pairs of error and reply. */
function errorsWithin(value: unknown): unknown[] {
  return Array.isArray(value) ? (value as unknown[]).flat().filter((part) => part instanceof Error) : [];
}

function expectUnavailable(faults: readonly unknown[]): void {
  expect(faults).not.toEqual([]);
  for (const fault of faults) {
    let passed: unknown;
    void storeFault(fault, {} as Request, {} as Response, (next?: unknown) => (passed = next));
    expect(passed).toMatchObject({ code: 'model_unavailable', retryAfterSeconds: 1, cause: fault });
  }
}

describe('what a Redis that is cut off makes of calls is 503', () => {
  let redis: RedisClient;
  beforeAll(async () => {
    proxy = await openTcpProxy(redisUrl());
  });
  afterAll(async () => {
    await proxy.close();
  });
  afterEach(() => {
    proxy.set('pass');
    redis.disconnect();
  });

  it.each<[string, () => readonly Promise<unknown>[]]>([
    [
      'commands, a script, a transaction, a pipeline and a wait',
      () => [
        redis.get('a'),
        redis.evalsha('0'.repeat(40), 0),
        redis.multi().get('a').incr('b').exec(),
        redis.pipeline().get('a').incr('b').exec(),
        redis.blpop('never', 0),
      ],
    ],
    // Answers come for the first command alone.
    ['a pipeline that is answered in part', () => [redis.pipeline().ping().blpop('never', 0).incr('b').exec()]],
  ])('%s', async (what, call) => {
    redis = await openTestRedis('producer', proxy.url);
    redis.on('error', () => undefined);
    if (!what.includes('part')) proxy.set('silent');
    const underWay = faultsOf(call());
    await pause();
    proxy.set('reset');
    const afterwards = faultsOf(call());
    const faults = await underWay;
    expectUnavailable([...faults, ...(await afterwards)]);
    expectUnavailable(await faultsOf(call()));
    redis.disconnect();
    expectUnavailable(await faultsOf(call()));
  });

  it('calls of BullMQ', async () => {
    redis = await openTestRedis('producer', proxy.url);
    redis.on('error', () => undefined);
    const name = uniqueName('faults');
    const jobs = openQueue('webhooks', { client: redis, prefix: `{${name}}`, onError: () => undefined });
    await jobs.queue.waitUntilReady();
    const calls = () => [
      jobs.queue.getJobCounts(),
      jobs.queue.getJobs(['waiting']),
      jobs.queue.getJobState('a'),
      jobs.queue.isPaused(),
      jobs.queue.getWorkers(),
    ];
    proxy.set('silent');
    const underWay = faultsOf(calls());
    await pause();
    proxy.set('reset');
    const faults = await underWay;
    redis.disconnect();
    expectUnavailable([...faults, ...(await faultsOf(calls()))]);
    await jobs.close();
  });

  it('a call that gets no answer', async () => {
    redis = await openTestRedis('producer', proxy.url);
    proxy.set('silent');
    expectUnavailable(await faultsOf([redis.get('a'), redis.multi().get('a').exec()]));
  });
});

it.each(['redis', 'rediss', 'redis+cluster', 'redis+sentinel'])(
  'calls of a Redis that is not there are 503: %s',
  async (scheme) => {
    const redis = createRedis(`${scheme}://127.0.0.1:1${scheme === 'redis+sentinel' ? '/main' : ''}`, 'producer');
    redis.on('error', () => undefined);
    const connecting = redis.connect().catch(() => undefined);
    const calls = () => [redis.get('a'), redis.ping(), redis.evalsha('0'.repeat(40), 1, 'a')];
    const faults = await faultsOf(calls());
    redis.disconnect();
    await connecting;
    expectUnavailable([...faults, ...(await faultsOf(calls()))]);
  },
);

describe('what a MongoDB that is cut off makes of calls is 503', () => {
  let mongo: MongoConnection;
  beforeAll(async () => {
    proxy = await openTcpProxy(mongoUri(uniqueName('faults')));
  });
  afterAll(async () => {
    await proxy.close();
  });
  afterEach(async () => {
    proxy.set('pass');
    await mongo.close();
  });

  /** As long as the ingress waits; on a busy machine a first connection may take longer. */
  const connect = () =>
    waitFor(() => connectMongo(proxy.url, { callTimeoutMs: 1_000 }).catch(() => undefined), 'a connection');
  const rows = () => mongo.collection<{ _id: string; sum: number }>('rows');
  const calls: [string, () => Promise<unknown>][] = [
    ['find', () => rows().findOne({ _id: 'a' })],
    ['insert', () => rows().insertOne({ _id: uniqueName('row'), sum: 0 })],
    ['update', () => rows().updateOne({ _id: 'a' }, { $inc: { sum: 1 } })],
    ['updateMany', () => rows().updateMany({ sum: 7 }, { $inc: { sum: 1 } })],
    ['bulkWrite', () => rows().bulkWrite([{ updateOne: { filter: { _id: 'a' }, update: { $inc: { sum: 1 } } } }])],
    [
      'aggregate',
      () =>
        rows()
          .aggregate([{ $match: { sum: 1 } }])
          .toArray(),
    ],
    ['distinct', () => rows().distinct('sum')],
    [
      'transaction',
      () => mongo.transaction((session) => rows().updateOne({ _id: 'a' }, { $inc: { sum: 1 } }, { session })),
    ],
  ];

  it.each(['reset', 'close', 'silent'] as const)('%s', async (how) => {
    mongo = await connect();
    proxy.set('silent');
    // More than one of each, so that some wait for a connection.
    const underWay = faultsOf([...calls, ...calls, ...calls].map(([, call]) => call()));
    await pause();
    if (how === 'reset') proxy.set('reset');
    if (how === 'close') await mongo.close();
    const faults = await underWay;
    const afterwards = await faultsOf(calls.map(([, call]) => call()));
    expect([faults.length, afterwards.length]).toEqual([3 * calls.length, calls.length]);
    expectUnavailable([...faults, ...afterwards]);
  });
});
