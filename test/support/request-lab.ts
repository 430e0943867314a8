import type { SettlementRecord } from '../../shared/contracts/settlement.ts';
import type { RequestEnvelope } from '../../shared/contracts/jobs.ts';
import type { Principal } from '../../shared/domain/principal.ts';
import { monthOf } from '../../shared/domain/pricing.ts';
import { createAccountStore } from '../../shared/redis/stores/account-store.ts';
import type { AccountFigures, AccountStore } from '../../shared/redis/stores/account-store.ts';
import { createAdmissionStore } from '../../shared/requests/admission-store.ts';
import type { Admission, AdmissionStore } from '../../shared/requests/admission-store.ts';
import type { RedisClient } from '../../shared/redis/connection.ts';
import type { ChatQueues } from '../../shared/queue/queues.ts';
import { createChatQueues } from '../../shared/queue/queues.ts';
import { createInflight } from '../../shared/requests/overdue.ts';
import type { Inflight } from '../../shared/requests/overdue.ts';
import { createKeyspace } from '../../shared/redis/keyspace.ts';
import type { Keyspace, ShardKeys } from '../../shared/redis/keyspace.ts';
import { createOutbox } from '../../shared/requests/outbox.ts';
import type { Outbox } from '../../shared/requests/outbox.ts';
import { createRequestStore } from '../../shared/requests/delivery-store.ts';
import type { ClaimedRequest, DeliveryRef, FinishInput, HoldRequest } from '../../shared/requests/delivery.ts';
import type { RequestStore } from '../../shared/requests/delivery-store.ts';
import { newId } from '../../shared/lifecycle/ids.ts';
import { openTestRedis, uniqueName } from './stores.ts';

export const SHARD = 3;
export const LEASE_MS = 10_000;
/** Of the lab's request store. */
export const LAB_SETTINGS = { leaseMs: LEASE_MS, disconnectGraceMs: 30_000 };
export const RETENTION_MS = 60_000;
export const REQUEST_TIMEOUT_MS = 600_000;
/** Micro-credits a token, for prompt and completion. */
export const RATE = 1_000_000;
const CHANNEL = 'test:ingress';

/** A request that was let in, with what an ingress and a worker know of it. */
export interface LabRequest {
  requestId: string;
  principal: Principal;
  admission: Admission;
  envelope: RequestEnvelope;
  /** The writing end of a delivery. */
  ref(fence: number): DeliveryRef;
  /** What a successful end owes. */
  settlement(costMicro: number, completionTokens: number): SettlementRecord;
}

export interface AdmitOptions {
  principal?: Principal;
  promptTokens?: number;
  maxTokens?: number;
  timeoutMs?: number;
  retentionMs?: number;
  /** By default a new one. */
  requestId?: string;
  /** Leaves the body out, as an ingress that died in between. */
  withoutBody?: boolean;
  entityHash?: string;
  idempotency?: { name: string; fingerprint: string };
  attempt?: { name: string; fingerprint: string; isRetry: boolean };
}

/** The stores of a request's life over real Redis, with a namespace of its own; nothing runs by itself. */
export interface RequestLab {
  redis: RedisClient;
  keyspace: Keyspace;
  keys: ShardKeys;
  requests: RequestStore;
  admissions: AdmissionStore;
  accounts: AccountStore;
  inflight: Inflight;
  queues: ChatQueues;
  outbox: Outbox;
  /** What workers have published to the ingress that waits, in order. */
  heard: string[];
  /** A new tenant's key; live ones have `balanceMicro` in their book. */
  tenant(balanceMicro?: number, more?: Partial<Principal>): Promise<Principal>;
  /** Asks for admission, and stores the body where it is granted. */
  admit(options?: AdmitOptions): Promise<LabRequest>;
  /** Claims; throws where the delivery is dropped. */
  run(request: LabRequest, fence: number): Promise<ClaimedRequest>;
  figures(principal: Principal): Promise<AccountFigures>;
  /** Every key of the namespace with its value, to show that nothing has changed. */
  snapshot(): Promise<Record<string, string>>;
  /** A further client, closed with the rest. */
  connect(url?: string): Promise<RedisClient>;
  close(): Promise<void>;
}

export function endingOf(
  request: LabRequest,
  text: string,
  tokens: { prompt: number; completion: number },
): FinishInput {
  const costMicro = request.principal.mode === 'test' ? 0 : (tokens.prompt + tokens.completion) * RATE;
  const usage = { promptTokens: tokens.prompt, completionTokens: tokens.completion };
  return {
    retentionMs: RETENTION_MS,
    status: 'completed',
    deltas: text === '' ? [] : [text],
    terminal: { finishReason: 'stop', usage },
    costMicro,
    settlement: { ...request.settlement(costMicro, tokens.completion), promptTokens: tokens.prompt },
  };
}

/** A renewal that must hold this many tokens and asks for none ahead of need. */
export function needs(tokens: number, more: Partial<HoldRequest> = {}): HoldRequest {
  const held = { micro: tokens * RATE, tokens };
  return { weight: tokens, required: held, preferred: held, overdraft: { micro: 0, tokens: 0 }, ...more };
}

/** An end without text: nothing is charged. */
export const FAILED: FinishInput = {
  retentionMs: RETENTION_MS,
  status: 'failed',
  deltas: [],
  terminal: {
    finishReason: 'error',
    usage: { promptTokens: 0, completionTokens: 0 },
    error: { code: 'model_unavailable', message: 'The model provider is not available at the moment.' },
  },
  costMicro: 0,
};

export function principalOf(more: Partial<Principal>): Principal {
  return {
    keyId: newId('key'),
    tenantId: newId('ten'),
    shard: SHARD,
    mode: 'live',
    scopes: ['*'],
    keyStatus: 'active',
    tenantStatus: 'active',
    limits: { rpm: 10_000, tpm: 10_000_000, dailyRequests: 0, chatRpm: 10_000, streamRpm: 10_000 },
    ceilings: { rpm: null, tpm: null, inFlight: null },
    weight: 1,
    monthlyTokenBudget: null,
    testDailyTokens: 1_000_000,
    defaultModel: 'mobius',
    onDisconnect: 'cancel',
    ...more,
  };
}

export function labRequest(requestId: string, principal: Principal, admission: Admission): LabRequest {
  const { tenantId, keyId, mode, shard } = principal;
  const common = { requestId, tenantId, keyId, mode, tier: 'mobius', endpoint: 'chat.stream' } as const;
  const acceptedAt = admission.now;
  return {
    requestId,
    principal,
    admission,
    envelope: {
      ...common,
      stream: true,
      acceptedAt,
      retentionMs: RETENTION_MS,
      tenant: {},
      request: { messages: [{ role: 'user', content: 'Hello' }], maxTokens: 100, jsonMode: false },
    },
    ref: (fence) => ({ shard, requestId, tenantId, keyId, queue: 'interactive', fence }),
    settlement: (costMicro, completionTokens) => ({
      ...common,
      provider: 'simulated',
      model: 'sim',
      promptTokens: 0,
      completionTokens,
      estimated: false,
      costMicro,
      finishReason: 'stop',
      acceptedAt,
      finishedAt: acceptedAt + 1,
    }),
  };
}

async function readAll(redis: RedisClient, pattern: string): Promise<Record<string, string>> {
  const values: Record<string, string> = {};
  for (const key of (await redis.keys(pattern)).sort()) {
    // DUMP has the whole value whatever its type; times to live are not part of it.
    // A key may end between the two calls: the types of ioredis do not say so.
    const value = (await redis.dumpBuffer(key)) as Buffer | null;
    if (value !== null) values[key] = value.toString('base64');
  }
  return values;
}

export async function openRequestLab(): Promise<RequestLab> {
  const namespace = uniqueName('lab');
  const keyspace = createKeyspace(namespace);
  const keys = keyspace.shard(SHARD);
  const clients: RedisClient[] = [];
  async function connect(url?: string, role: 'worker' | 'subscriber' = 'worker'): Promise<RedisClient> {
    const client = await openTestRedis(role, url);
    clients.push(client);
    client.on('error', () => undefined);
    return client;
  }
  const redis = await connect();
  const subscriber = await connect(undefined, 'subscriber');
  const channel = `${namespace}:${CHANNEL}`;
  const heard: string[] = [];
  subscriber.on('message', (_channel: string, message: string) => heard.push(message));
  await subscriber.subscribe(channel);

  const queues = createChatQueues(redis, keyspace, () => undefined);
  const requests = createRequestStore(redis, keyspace, LAB_SETTINGS);
  const accounts = createAccountStore(redis, keyspace);
  const storeFor = (requestTimeoutMs: number) =>
    createAdmissionStore(redis, keyspace, { queueLimit: 10_000, requestTimeoutMs, retentionMs: RETENTION_MS });

  async function tenant(balanceMicro = 1_000_000 * RATE, more: Partial<Principal> = {}): Promise<Principal> {
    const principal = principalOf(more);
    await accounts.publishBalance(SHARD, principal.tenantId, { balanceMicro, version: 1, tokensByMonth: {} });
    return principal;
  }

  return {
    redis,
    keyspace,
    keys,
    requests,
    accounts,
    heard,
    tenant,
    connect,
    admissions: storeFor(REQUEST_TIMEOUT_MS),
    queues,
    inflight: createInflight(redis, keyspace, queues),
    outbox: createOutbox(redis, keyspace),
    async admit(options = {}) {
      const { promptTokens = 10, maxTokens = 100, timeoutMs = REQUEST_TIMEOUT_MS, withoutBody = false } = options;
      const principal = options.principal ?? (await tenant());
      const { requestId = newId('req') } = options;
      const admission = await storeFor(timeoutMs).admit(
        {
          requestId,
          principal,
          endpoint: 'chat.stream',
          queue: 'interactive',
          rates: { promptMicro: RATE, completionMicro: RATE },
          promptTokens,
          maxTokens,
          channel,
          tier: 'mobius',
          metadataJson: undefined,
          onDisconnect: principal.onDisconnect,
          idempotency: options.idempotency,
          attempt: options.attempt,
          retentionMs: options.retentionMs ?? RETENTION_MS,
          entityHash: options.entityHash,
        },
        Date.now(),
      );
      const request = labRequest(requestId, principal, admission);
      if (admission.verdict === 'admitted' && !withoutBody) {
        await redis.set(keys.body(requestId), JSON.stringify(request.envelope));
      }
      return request;
    },
    async run(request, fence) {
      const claim = await requests.claim(request.ref(fence));
      if (claim.kind !== 'run')
        throw new Error(`Delivery ${fence} was dropped: ${claim.kind === 'drop' ? claim.reason : claim.error.message}`);
      return claim;
    },
    figures: ({ tenantId }) => accounts.read(SHARD, tenantId, monthOf(Date.now())),
    snapshot: () => readAll(redis, `{${namespace}-*`),
    async close() {
      const left = await redis.keys(`{${namespace}-*`);
      if (left.length > 0) await redis.unlink(...left);
      for (const client of clients) client.disconnect();
    },
  };
}
