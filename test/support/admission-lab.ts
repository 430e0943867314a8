import type { Principal } from '../../shared/domain/principal.ts';
import { monthOf } from '../../shared/domain/pricing.ts';
import { createAccountStore } from '../../shared/redis/stores/account-store.ts';
import type { AccountFigures, PublishedBalance } from '../../shared/redis/stores/account-store.ts';
import { createAdmissionStore } from '../../shared/requests/admission-store.ts';
import type { Admission, AdmissionStore } from '../../shared/requests/admission-store.ts';
import type { AdmissionRequest } from '../../shared/requests/admit-arguments.ts';
import type { RedisClient } from '../../shared/redis/connection.ts';
import { createKeyspace } from '../../shared/redis/keyspace.ts';
import type { Keyspace, ShardKeys } from '../../shared/redis/keyspace.ts';
import type { ShardClocks } from '../../shared/redis/scripts.ts';
import { newId } from '../../shared/lifecycle/ids.ts';
import { clockedRedis, setClock } from './clocked-redis.ts';
import { principalOf } from './request-lab.ts';
import { openTestRedis, uniqueName } from './stores.ts';
import { moveUse } from './use-window.ts';

const SHARD = 2;
/** Micro-credits a token. */
export const RATE = 1_000_000;
/** Waiting jobs at which the queue is full. */
export const LANE_LIMIT = 20;

type Asked = Partial<Omit<AdmissionRequest, 'principal'>>;

/** One key over real Redis. Time is moved by moving what Redis has noted of it into the past. */
export interface LabKey {
  principal: Principal;
  /** Ten prompt tokens and at most ten of completion, unless told otherwise. */
  admit(asked?: Asked, now?: number): Promise<Admission>;
  /** As `admit`, by a process that knows no other clock than its own. */
  admitAlone(asked: Asked, now: number): Promise<Admission>;
  /** As `admit`, with further limits of the key. */
  admitWith(limits: Partial<Principal['limits']>, asked?: Asked): Promise<Admission>;
  publish(book: Partial<PublishedBalance>): Promise<void>;
  figures(): Promise<AccountFigures>;
  /** Moves all that was counted so far this far into the past. */
  pass(ms: number): Promise<void>;
}

export interface AdmissionLab {
  redis: RedisClient;
  keyspace: Keyspace;
  keys: ShardKeys;
  store: AdmissionStore;
  /** A live key with limits that are out of the way and a balance of a million credits. */
  key(more?: Partial<Principal>, balanceTokens?: number): Promise<LabKey>;
  setTime(now: number): Promise<void>;
  /** Every key of the namespace with its value. */
  snapshot(): Promise<Record<string, string>>;
  close(): Promise<void>;
}

async function moveScores(redis: RedisClient, log: string, ms: number): Promise<void> {
  const members = await redis.zrange(log, '0', '-1');
  await Promise.all(members.map((member) => redis.zincrby(log, -ms, member)));
}

/** The fields of the day counters are minutes: whole ones move. */
async function moveDays(redis: RedisClient, key: string, minutes: number): Promise<void> {
  const fields = await redis.hgetall(key);
  if (minutes === 0 || Object.keys(fields).length === 0) return;
  await redis.del(key);
  const moved: Record<string, string> = {};
  for (const [field, value] of Object.entries(fields)) {
    if (field === 'total') moved[field] = value;
    else if (field === 'tail') moved[field] = String(Number(value) - minutes);
    else if (field === 'noted') moved[field] = value.replace(/\d+$/, (minute) => String(Number(minute) - minutes));
    else moved[String(Number(field) - minutes)] = value;
  }
  await redis.hset(key, moved);
}

interface LabOptions {
  url?: string;
  queueLimit?: number;
  clocks?: ShardClocks;
  /** Whether tests say what time it is (`setTime`). */
  isClocked?: boolean;
}

/** Without `url` in the Redis that all tests share. */
export async function openAdmissionLab({
  url,
  queueLimit = LANE_LIMIT,
  isClocked = false,
  ...more
}: LabOptions = {}): Promise<AdmissionLab> {
  const namespace = uniqueName('adm');
  const keyspace = createKeyspace(namespace);
  const keys = keyspace.shard(SHARD);
  const redis = await openTestRedis('producer', url);
  const settings = { queueLimit, requestTimeoutMs: 600_000, retentionMs: 60_000 };
  const clock = `${keys.tag}:clock`;
  const client = isClocked ? clockedRedis(redis, clock) : redis;
  const store = createAdmissionStore(client, keyspace, { ...settings, ...more });
  const accounts = createAccountStore(redis, keyspace);

  function labKey(principal: Principal): LabKey {
    const { keyId, tenantId } = principal;
    let version = 0;
    const admitAs = (as: Principal, asked: Asked, now = Date.now(), by = store) =>
      by.admit(
        {
          requestId: newId('req'),
          principal: as,
          endpoint: 'chat',
          queue: 'interactive',
          rates: { promptMicro: RATE, completionMicro: RATE },
          promptTokens: 10,
          maxTokens: 10,
          channel: 'ingress',
          tier: 'mobius',
          metadataJson: undefined,
          onDisconnect: 'cancel',
          idempotency: undefined,
          entityHash: undefined,
          ...asked,
        },
        now,
      );
    return {
      principal,
      admit: (asked = {}, now) => admitAs(principal, asked, now),
      admitAlone: (asked, now) => admitAs(principal, asked, now, createAdmissionStore(redis, keyspace, settings)),
      admitWith: (limits, asked = {}) => admitAs({ ...principal, limits: { ...principal.limits, ...limits } }, asked),
      async publish(book) {
        version += 1;
        await accounts.publishBalance(SHARD, tenantId, { balanceMicro: 0, version, tokensByMonth: {}, ...book });
      },
      figures: () => accounts.read(SHARD, tenantId, monthOf(Date.now())),
      async pass(ms) {
        const logs = [keys.keyRpm(keyId), keys.throttle('chat', keyId), keys.throttle('chat.stream', keyId)];
        for (const log of logs) await moveScores(redis, log, ms);
        for (const hash of [keys.tokenWindow(keyId), keys.account(tenantId)])
          await moveUse(redis, hash, Math.floor(ms / 1000));
        await moveDays(redis, keys.daily(keyId), Math.floor(ms / 60_000));
      },
    };
  }

  return {
    redis,
    keyspace,
    keys,
    store,
    async key(more = {}, balanceTokens = 1_000_000) {
      const key = labKey(principalOf({ shard: SHARD, ...more }));
      await key.publish({ balanceMicro: balanceTokens * RATE });
      return key;
    },
    setTime: (now) => setClock(redis, clock, { now, passedMs: 0 }, []),
    async snapshot() {
      const values: Record<string, string> = {};
      // DUMP has the whole value whatever its type; times to live are not part of it.
      for (const key of (await redis.keys(`{${namespace}-*`)).sort())
        values[key] = (await redis.dumpBuffer(key)).toString('base64');
      return values;
    },
    async close() {
      const left = await redis.keys(`{${namespace}-*`);
      if (left.length > 0) await redis.unlink(...left);
      await redis.quit();
    },
  };
}

/** Admits until the first refusal; returns it and how many were let in before. */
export async function fill(
  admit: () => Promise<Admission>,
  most = 200,
): Promise<{ admitted: number; refused: Admission }> {
  for (let admitted = 0; admitted <= most; admitted += 1) {
    const answer = await admit();
    if (answer.verdict !== 'admitted') return { admitted, refused: answer };
  }
  throw new Error(`Nothing was refused in ${most} admissions`);
}
