import { bullmqKeys } from '../queue/bullmq-layout.ts';

/** The key that made a request, and where its tenant is. */
export interface RequestOwner {
  shard: number;
  tenantId: string;
  keyId: string;
}

/** The first keys, in this order, of scripts that end a request before a worker has it (drop.lua). */
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

/** Every ingress listens here and drops the cached principals of the key or tenant whose id it hears. */
export const ACCESS_CHANNEL = 'parley:access';

/**
 * Names of every Redis key. All keys of a tenant carry the hash tag of its shard, so one script may touch any of them
 * on one server and on Redis Cluster alike; nothing else may assume that two keys are on one server.
 */
export function createKeyspace(namespace = 'chat') {
  const shards = new Map<number, ShardKeys>();
  return {
    shard(shard: number): ShardKeys {
      const keys = shards.get(shard) ?? shardKeys(`{${namespace}-${shard}}`);
      shards.set(shard, keys);
      return keys;
    },
    /** Circuit breakers belong to providers, not to tenants: they have a hash tag of their own. */
    breakers: providerKeys(`{${namespace}-breakers}`),
    capacities: providerKeys(`{${namespace}-capacities}`),
    /** The worker that reached MongoDB last. */
    mongoReached: `{${namespace}-workers}:mongo`,
    /** The processes that run. */
    processes: { ids: `{${namespace}-processes}:ids`, entry: (id: string) => `{${namespace}-processes}:p:${id}` },
    /** Tests of providers (stores/provider-tests.ts). */
    providerTests: { channel: `{${namespace}-tests}:asked`, result: (id: string) => `{${namespace}-tests}:t:${id}` },
    /** Addresses and sessions that the administration keeps out; it belongs to no tenant either. */
    administration: administrationKeys(`{${namespace}-admin}`),
    /** BullMQ's prefix for deliveries to tenants' receivers, which are not part of any request. */
    webhooks: `{${namespace}-webhooks}`,
    /** BullMQ's prefix for exports and deletions. */
    compliance: `{${namespace}-compliance}`,
  };
}

export type Keyspace = ReturnType<typeof createKeyspace>;
export type ShardKeys = ReturnType<typeof shardKeys>;

function shardKeys(tag: string) {
  return {
    /** BullMQ's prefix: its queues live beside the tenant's keys. */
    tag,
    ...bullmqKeys(tag),
    record: (requestId: string) => `${tag}:r:${requestId}`,
    body: (requestId: string) => `${tag}:b:${requestId}`,
    stream: (requestId: string) => `${tag}:s:${requestId}`,
    /** The answer of a request that was never streamed: the one entry its stream would have. */
    answer: (requestId: string) => `${tag}:a:${requestId}`,
    /** Present once a request has ended, if its record may expire before its intent is deleted. */
    ended: (requestId: string) => `${tag}:e:${requestId}`,
    keyRpm: (keyId: string) => `${tag}:rpm:${keyId}`,
    lookups: (keyId: string) => `${tag}:look:${keyId}`,
    throttle: (endpoint: string, keyId: string) => `${tag}:thr:${endpoint}:${keyId}`,
    /** Writes of a tenant's recent uploads. */
    writing: (tenantId: string) => `${tag}:writing:${tenantId}`,
    tokenWindow: (keyId: string) => `${tag}:kuse:${keyId}`,
    daily: (keyId: string) => `${tag}:day:${keyId}`,
    /** Moving mean of the key's completions, in tokens. */
    meanCompletion: (keyId: string) => `${tag}:mean:${keyId}`,
    /** The tenant's balance, what its requests of the last minute took, by the second, and how far its turns have come. */
    account: (tenantId: string) => `${tag}:acct:${tenantId}`,
    pending: (tenantId: string) => `${tag}:pend:${tenantId}`,
    testAllowance: (tenantId: string, day: string) => `${tag}:test:${tenantId}:${day}`,
    /** The tenant's interactive requests that have not ended, in the order of acceptance. */
    open: (tenantId: string) => `${tag}:open:${tenantId}`,
    /** Present while a key is revoked or a tenant suspended and some cache may not know. */
    blocked: (id: string) => `${tag}:blocked:${id}`,
    address: (address: string) => `${tag}:addr:${address}`,
    /** Which request runs or ran under an Idempotency-Key. */
    idempotency: (name: string) => `${tag}:idem:${name}`,
    /** The latest requests of equal calls whose client tries again by itself. */
    retries: (name: string) => `${tag}:tries:${name}`,
    /** The requests of an entity that left something here, by its pseudonym: no key names an entity. */
    entityRequests: (tenantId: string, pseudonym: string) => `${tag}:ent:${tenantId}:${pseudonym}`,
    /**
     * Ids of a tenant's ended requests, each with a space behind it, by the time at which what they left is gone: a number
     * that rises (answers.lua).
     */
    left: (tenantId: string, until: number | string) => `${tag}:left:${tenantId}:${until}`,
    inflight: `${tag}:inflight`,
    /** Since when it is this server that has the shard's data. */
    incarnation: `${tag}:incarnation`,
    outbox: `${tag}:outbox`,
    /** Ends of requests that webhooks hear of although nothing is booked. */
    notices: `${tag}:notices`,
    /** Settlement records that cannot be booked. */
    deadLetters: `${tag}:outbox:dead`,
    /** Drift that the last reconciliation left, by part. */
    drift: `${tag}:drift`,
    /** Throughput of the queue, and what callers of a full one were told. */
    queueStatistics: (queue: string) => `${tag}:throughput:${queue}`,
    lease: (task: string) => `${tag}:lease:${task}`,
    /** Present once a batch is being ended: none of its lines is admitted any more. */
    closedBatch: (batchId: string) => `${tag}:closed:${batchId}`,
    /** Whether a batch runs or was refused, where its ingress may not know whether it has started. */
    batchState: (batchId: string) => `${tag}:batch-state:${batchId}`,
    /** Channel: ids of cancelled requests, for the workers that run them. */
    cancelled: `${tag}:cancelled`,
    channel: (ingressId: string) => `${tag}:in:${ingressId}`,
  };
}

function administrationKeys(tag: string) {
  return {
    /** Failed tokens by address. */
    failures: (address: string) => `${tag}:addr:${address}`,
    /** Present once a session has been ended before its time. */
    endedSession: (session: string) => `${tag}:ended:${session}`,
  };
}

function providerKeys(tag: string) {
  return {
    /** Provider, or provider and model → its breaker or capacity, JSON. */
    states: `${tag}:states`,
    /** The latest changes. */
    events: `${tag}:events`,
    channel: `${tag}:changes`,
  };
}
