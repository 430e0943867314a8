import { bullmqKeys } from '../queue/bullmq-layout.ts';

export interface RequestOwner {
  shard: number;
  tenantId: string;
  keyId: string;
}

/** Scripts that end a request before a worker has it take these keys first, in this order (drop.lua). */
export function acceptedKeys(
  keyspace: Keyspace,
  requestId: string,
  { shard, keyId, tenantId }: RequestOwner,
): string[] {
  const keys = keyspace.shard(shard);
  return [
    keys.record(requestId),
    keys.body(requestId),
    keys.inflight,
    keys.account(tenantId),
    keys.tokenWindow(keyId),
    keys.stream(requestId),
    keys.open(tenantId),
    keys.prioritized('interactive'),
    keys.prioritized('batch'),
  ];
}

/** Every ingress listens here and drops cached principals of the key or tenant whose id it hears. */
export const ACCESS_CHANNEL = 'parley:access';

/**
 * Names every Redis key. A tenant's keys carry its shard's hash tag, so one script may touch any of them on one server
 * and on Redis Cluster; nothing else may assume that two keys are on one server.
 */
export function createKeyspace(namespace = 'chat') {
  const shards = new Map<number, ShardKeys>();
  return {
    shard(shard: number): ShardKeys {
      const keys = shards.get(shard) ?? shardKeys(`{${namespace}-${shard}}`);
      shards.set(shard, keys);
      return keys;
    },
    /** Breakers belong to providers, not to tenants, so they have their own hash tag. */
    breakers: providerKeys(`{${namespace}-breakers}`),
    capacities: providerKeys(`{${namespace}-capacities}`),
    /** The worker that reached MongoDB last. */
    mongoReached: `{${namespace}-workers}:mongo`,
    processes: { ids: `{${namespace}-processes}:ids`, entry: (id: string) => `{${namespace}-processes}:p:${id}` },
    providerTests: { channel: `{${namespace}-tests}:asked`, result: (id: string) => `{${namespace}-tests}:t:${id}` },
    /** Addresses and sessions that the administration keeps out. */
    administration: administrationKeys(`{${namespace}-admin}`),
    /** BullMQ's prefix for deliveries to tenants' receivers, which are part of no request. */
    webhooks: `{${namespace}-webhooks}`,
    /** BullMQ's prefix for exports and deletions. */
    compliance: `{${namespace}-compliance}`,
  };
}

export type Keyspace = ReturnType<typeof createKeyspace>;
export type ShardKeys = ReturnType<typeof shardKeys>;

function shardKeys(tag: string) {
  return {
    /** BullMQ's prefix: queues live beside the tenant's keys. */
    tag,
    ...bullmqKeys(tag),
    record: (requestId: string) => `${tag}:r:${requestId}`,
    body: (requestId: string) => `${tag}:b:${requestId}`,
    stream: (requestId: string) => `${tag}:s:${requestId}`,
    /** The answer of a request that was never streamed: the only entry of its stream. */
    answer: (requestId: string) => `${tag}:a:${requestId}`,
    /** Present once a request has ended, if its record may expire before its intent is deleted. */
    ended: (requestId: string) => `${tag}:e:${requestId}`,
    keyRpm: (keyId: string) => `${tag}:rpm:${keyId}`,
    lookups: (keyId: string) => `${tag}:look:${keyId}`,
    throttle: (endpoint: string, keyId: string) => `${tag}:thr:${endpoint}:${keyId}`,
    writing: (tenantId: string) => `${tag}:writing:${tenantId}`,
    tokenWindow: (keyId: string) => `${tag}:kuse:${keyId}`,
    daily: (keyId: string) => `${tag}:day:${keyId}`,
    /** Moving mean of the key's completions, in tokens. */
    meanCompletion: (keyId: string) => `${tag}:mean:${keyId}`,
    /** Has the balance, the last minute's use by the second, and how far the tenant's turns have come. */
    account: (tenantId: string) => `${tag}:acct:${tenantId}`,
    pending: (tenantId: string) => `${tag}:pend:${tenantId}`,
    testAllowance: (tenantId: string, day: string) => `${tag}:test:${tenantId}:${day}`,
    /** Interactive requests that have not ended, in the order of acceptance. */
    open: (tenantId: string) => `${tag}:open:${tenantId}`,
    /** Present while a key is revoked or a tenant suspended and some cache may not know. */
    blocked: (id: string) => `${tag}:blocked:${id}`,
    address: (address: string) => `${tag}:addr:${address}`,
    idempotency: (name: string) => `${tag}:idem:${name}`,
    /** The latest of equal calls whose client retries by itself. */
    retries: (name: string) => `${tag}:tries:${name}`,
    /** An entity's requests that left something here, by its pseudonym: no key names an entity. */
    entityRequests: (tenantId: string, pseudonym: string) => `${tag}:ent:${tenantId}:${pseudonym}`,
    /** A tenant's ended requests, ids with a space behind each, by when all they left is gone (answers.lua). */
    left: (tenantId: string, until: number | string) => `${tag}:left:${tenantId}:${until}`,
    inflight: `${tag}:inflight`,
    /** This server has had the shard's data since then. */
    incarnation: `${tag}:incarnation`,
    outbox: `${tag}:outbox`,
    /** Ends that webhooks hear of although nothing is booked. */
    notices: `${tag}:notices`,
    /** Settlement records that cannot be booked. */
    deadLetters: `${tag}:outbox:dead`,
    /** From the last reconciliation, by part. */
    drift: `${tag}:drift`,
    /** Throughput, and what a full queue told its callers. */
    queueStatistics: (queue: string) => `${tag}:throughput:${queue}`,
    lease: (task: string) => `${tag}:lease:${task}`,
    /** Present once a batch is being ended: no further line is admitted. */
    closedBatch: (batchId: string) => `${tag}:closed:${batchId}`,
    /** Tells an ingress whether a batch runs or was refused, in case it does not know. */
    batchState: (batchId: string) => `${tag}:batch-state:${batchId}`,
    /** Channel: ids of cancelled requests, for the workers that run them. */
    cancelled: `${tag}:cancelled`,
    channel: (ingressId: string) => `${tag}:in:${ingressId}`,
  };
}

function administrationKeys(tag: string) {
  return {
    failures: (address: string) => `${tag}:addr:${address}`,
    /** Present for a session that was ended early. */
    endedSession: (session: string) => `${tag}:ended:${session}`,
  };
}

function providerKeys(tag: string) {
  return {
    /** Provider, or provider and model → its breaker or capacity, JSON. */
    states: `${tag}:states`,
    events: `${tag}:events`,
    channel: `${tag}:changes`,
  };
}
