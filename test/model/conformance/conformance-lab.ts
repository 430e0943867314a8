import { decodeEntry } from '../../../shared/contracts/events.ts';
import { parseSettlement } from '../../../shared/contracts/settlement.ts';
import { createAccountStore } from '../../../shared/redis/stores/account-store.ts';
import type { AccountStore } from '../../../shared/redis/stores/account-store.ts';
import { createAdmissionStore } from '../../../shared/requests/admission-store.ts';
import type { AdmissionStore } from '../../../shared/requests/admission-store.ts';
import { createRecordStore } from '../../../shared/requests/record-store.ts';
import type { RecordStore } from '../../../shared/requests/record-store.ts';
import type { RedisClient } from '../../../shared/redis/connection.ts';
import { createChatQueues } from '../../../shared/queue/queues.ts';
import { createInflight } from '../../../shared/requests/overdue.ts';
import { createKeyspace } from '../../../shared/redis/keyspace.ts';
import type { Keyspace } from '../../../shared/redis/keyspace.ts';
import { createLeaderLease } from '../../../shared/redis/stores/leader-lease.ts';
import { createOutbox } from '../../../shared/requests/outbox.ts';
import type { Outbox } from '../../../shared/requests/outbox.ts';
import { createRequestStore } from '../../../shared/requests/delivery-store.ts';
import type { RequestStore } from '../../../shared/requests/delivery-store.ts';
import type { HandedRequest } from '../../../workers/pipeline/stage.ts';
import { createSweep } from '../../../workers/settlement/sweep.ts';
import { hookScripts } from './hook-scripts.ts';
import { createRecordingLog } from '../../support/recording-log.ts';
import { LEASE_MS, REQUEST_TIMEOUT_MS, RETENTION_MS } from '../../support/request-lab.ts';
import { openTestRedis, uniqueName } from '../../support/stores.ts';

/** What Redis has of one request, in the words of the model. */
interface RequestView {
  state: string;
  fence: number;
  sentSeq: number;
  hold: number;
  cancelled: boolean;
  terminals: number;
}

/** What Redis has of one shard with one tenant. */
export interface ShardView {
  requests: RequestView[];
  book: number;
  version: number;
  held: number;
  /** The counter, and what it counts. */
  pend: number;
  pending: Record<string, number>;
  /** Costs by request id, in the order of their coming. */
  outbox: [requestId: string, cost: number][];
}

/** The real stores over real Redis. Each run has a shard of its own; nothing runs by itself. */
export interface ConformanceLab {
  redis: RedisClient;
  keyspace: Keyspace;
  requests: RequestStore;
  admissions: AdmissionStore;
  records: RecordStore;
  accounts: AccountStore;
  outbox: Outbox;
  /** Requests of which a call was told that they end: MongoDB has them. */
  promised: Set<string>;
  /** The next script is sent twice, see hook-scripts.ts. */
  sendNextTwice(): void;
  /** A shard that no run has had before. */
  newShard(): number;
  /** One round of the real sweep over a shard; returns what it hands to the pipeline. */
  sweep(shard: number): Promise<HandedRequest[]>;
  view(shard: number, tenantId: string, requestIds: readonly string[]): Promise<ShardView>;
  close(): Promise<void>;
}

async function viewRequest(redis: RedisClient, keyspace: Keyspace, shard: number, id: string): Promise<RequestView> {
  const keys = keyspace.shard(shard);
  const [values, rows, answer] = await Promise.all([
    redis.hmget(keys.record(id), 'state', 'fence', 'lastSeq', 'hold', 'cancel'),
    redis.xrange(keys.stream(id), '-', '+'),
    redis.get(keys.answer(id)),
  ]);
  const [state, fence, sent, hold, cancel] = values;
  const payloads = rows.map(([, fields]) => fields[1] ?? '');
  if (answer !== null) payloads.push(answer.slice(answer.indexOf('\n') + 1));
  return {
    state: state ?? 'absent',
    fence: Number(fence ?? 0),
    sentSeq: Number(sent ?? 0),
    // What has ended holds nothing, whatever its record says.
    hold: state === 'done' ? 0 : Number(hold ?? 0),
    cancelled: cancel === '1',
    terminals: payloads.filter((payload) => decodeEntry(0, payload).terminal !== undefined).length,
  };
}

/** `edit` may change the text of the scripts. */
export async function openConformanceLab(edit: (lua: string) => string = (lua) => lua): Promise<ConformanceLab> {
  const namespace = uniqueName('conf');
  const keyspace = createKeyspace(namespace);
  const redis = await openTestRedis('worker');
  const hooks = hookScripts(redis, edit);
  const admissions = createAdmissionStore(redis, keyspace, {
    queueLimit: 10_000,
    requestTimeoutMs: REQUEST_TIMEOUT_MS,
    retentionMs: RETENTION_MS,
  });
  const requests = createRequestStore(redis, keyspace, { leaseMs: LEASE_MS, disconnectGraceMs: 30_000 });
  // BullMQ's own scripts are none of those that are changed.
  const unhooked = await openTestRedis('worker');
  const queues = createChatQueues(unhooked, keyspace, () => undefined);
  const promised = new Set<string>();
  let taken: HandedRequest[] = [];
  const sweep = createSweep({
    inflight: createInflight(redis, keyspace, queues),
    admissions,
    requests,
    recoverLost: {
      round: () => Promise.resolve(),
      makeDue: ({ requestId }) => Promise.resolve(promised.has(requestId)),
    },
    retentionMs: RETENTION_MS,
    hasReconnectedRecently: () => false,
    isExhausted: () => false,
    leases: createLeaderLease(redis, keyspace, 'process'),
    runPipeline: (delivery) => {
      taken.push(delivery);
      return Promise.resolve();
    },
    log: createRecordingLog(),
  });
  let shards = 0;

  return {
    redis,
    keyspace,
    requests,
    admissions,
    records: createRecordStore(redis, keyspace, { retentionMs: RETENTION_MS }),
    accounts: createAccountStore(redis, keyspace),
    outbox: createOutbox(redis, keyspace),
    promised,
    sendNextTwice: hooks.sendNextTwice,
    newShard: () => (shards += 1),
    async sweep(shard) {
      taken = [];
      await sweep.sweepShard(shard);
      await sweep.idle();
      return taken;
    },
    async view(shard, tenantId, requestIds) {
      const keys = keyspace.shard(shard);
      const [views, account, pending, rows] = await Promise.all([
        Promise.all(requestIds.map((id) => viewRequest(redis, keyspace, shard, id))),
        redis.hmget(keys.account(tenantId), 'ledgerBalance', 'version', 'held', 'pending'),
        redis.hgetall(keys.pending(tenantId)),
        redis.xrange(keys.outbox, '-', '+'),
      ]);
      const [book = 0, version = 0, held = 0, pend = 0] = account.map(Number);
      const owed = Object.entries(pending).map(([id, text]): [string, number] => [id, Number(text.split(':')[0])]);
      const outbox = rows.map(([, fields]): [string, number] => {
        const record = parseSettlement(fields[1] ?? '');
        return [record?.requestId ?? '', record?.costMicro ?? NaN];
      });
      return { requests: views, book, version, held, pend, pending: Object.fromEntries(owed), outbox };
    },
    async close() {
      const left = await redis.keys(`{${namespace}-*`);
      for (let from = 0; from < left.length; from += 5_000) await redis.unlink(...left.slice(from, from + 5_000));
      await queues.close();
      unhooked.disconnect();
      redis.disconnect();
    },
  };
}
