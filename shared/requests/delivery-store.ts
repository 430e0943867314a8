import { encodeEntry } from '../contracts/events.ts';
import type { Increment } from '../contracts/events.ts';
import { queueOf, UnreadableError } from '../contracts/jobs.ts';
import type { OnEarlyEnd } from '../contracts/settlement.ts';
import type { Pseudonyms } from '../domain/pseudonyms.ts';
import { randomBase62 } from '../lifecycle/ids.ts';
import type { RedisClient } from '../redis/connection.ts';
import type { Keyspace } from '../redis/keyspace.ts';
import { defineScript, textsOf } from '../redis/scripts.ts';
import type { ScriptReply } from '../redis/scripts.ts';
import { serverTimeMs } from '../redis/time-limits.ts';
import { factsOfRecord, queueOfRecord, readEnvelope, snapshotOf, toClaimed, toHold } from './delivery.ts';
import type {
  ClaimedRequest,
  ClaimFence,
  DeliveryRef,
  FinishInput,
  HoldRequest,
  Renewal,
  WriteOutcome,
} from './delivery.ts';
import { createFinishRequest } from './finish-request.ts';
import type { EndReplays } from './finish-request.ts';
import { createRepairs, toPutBackRunning } from './rollback.ts';
import type { WriteWhole } from './rollback.ts';

interface Append {
  ref: DeliveryRef;
  /** Sequence number of the last of `deltas`. */
  lastSeq: number;
  deltas: readonly Increment[];
  /** The provider's prompt, in case another process has to end the request. */
  promptTokens: number;
}

interface Waiting extends Append {
  resolve: (outcome: ScriptReply) => void;
  reject: (error: unknown) => void;
}

/**
 * Text waits this long for other requests' text. A call costs more than its content: 200 live streams of 50 chunks per
 * second make 200 calls per second, not 10,000.
 */
const GATHER_MS = 5;
/** Redis takes less than a millisecond for a call with this many requests. */
const REQUESTS_MAX = 64;

/** `send` gets at most REQUESTS_MAX texts. */
function openGather(send: (texts: readonly Waiting[]) => Promise<void>): (text: Waiting) => void {
  let waiting: Waiting[] = [];
  let sentAt = -Infinity;
  let timer: NodeJS.Timeout | undefined;
  let flushing: NodeJS.Immediate | undefined;

  function flush(): void {
    clearTimeout(timer);
    timer = undefined;
    flushing = undefined;
    sentAt = performance.now();
    const texts = waiting;
    waiting = [];
    for (let at = 0; at < texts.length; at += REQUESTS_MAX) void send(texts.slice(at, at + REQUESTS_MAX));
  }

  return (text) => {
    waiting.push(text);
    const isFirst = text.lastSeq === text.deltas.length;
    const waitMs = sentAt + GATHER_MS - performance.now();
    if (isFirst || waitMs <= 0) flushing ??= setImmediate(flush);
    else timer ??= setTimeout(flush, waitMs);
  };
}

/**
 * Appends a shard's texts in common calls (append.lua). A call leaves at the end of the event loop's turn, or 5 ms
 * after the one before; a request's first text does not wait. Resolves with the script's reply for this request.
 */
function createCommonAppend(client: RedisClient, keyspace: Keyspace): (text: Append) => Promise<ScriptReply> {
  const append = defineScript(client, 'append');
  const gathers = new Map<number, (text: Waiting) => void>();

  async function send(shard: number, texts: readonly Waiting[]): Promise<void> {
    const keys = keyspace.shard(shard);
    try {
      const outcomes = await append(
        texts.flatMap(({ ref: { requestId } }) => [keys.record(requestId), keys.stream(requestId)]),
        texts.flatMap(({ ref: { requestId, fence, owner = '' }, lastSeq, deltas, promptTokens }) => [
          textsOf([requestId, fence, lastSeq, promptTokens, owner, lastSeq - deltas.length]),
          encodeEntry(deltas),
        ]),
      );
      if (!Array.isArray(outcomes)) throw new Error('The script append gave no list');
      for (const [at, { resolve, reject }] of texts.entries()) {
        const outcome = outcomes[at] ?? null;
        if (typeof outcome === 'string' && outcome.startsWith('failed')) reject(new Error(`Redis ${outcome}`));
        else resolve(outcome);
      }
    } catch (error) {
      for (const { reject } of texts) reject(error);
    }
  }

  return (text) =>
    new Promise((resolve, reject) => {
      const { shard } = text.ref;
      const gather = gathers.get(shard) ?? openGather((texts) => send(shard, texts));
      gathers.set(shard, gather);
      gather({ ...text, resolve, reject });
    });
}

interface AppendMore {
  /** The provider's prompt, in case another process has to end the request. */
  promptTokens?: number;
  /** Appended earlier by this delivery: Redis may have lost some. */
  earlier?: readonly Increment[];
}

type Claimant = Pick<DeliveryRef, 'shard' | 'requestId' | 'tenantId' | 'fence'>;

interface ClaimingJob {
  /** Names the claim. Absent: a request that is taken over beside its queue has no job. */
  lock?: string;
  /** claiming.lua's reply, if the request was claimed with its job: Redis is not asked again. */
  claim?: ScriptReply[] | undefined;
}

interface Writes {
  append(ref: DeliveryRef, lastSeq: number, deltas: readonly Increment[], more: AppendMore): Promise<WriteOutcome>;
  renew(ref: DeliveryRef, needed: HoldRequest): Promise<Renewal>;
  finish(ref: DeliveryRef, sentSeq: number, ending: FinishInput, earlier: readonly Increment[]): Promise<boolean>;
}

/** Knows fence, claim, sent text and record, so that each write restores what Redis has lost (rollback.ts). */
export type Delivery = ReturnType<typeof openDelivery>;

/** `lastSeq`: of the last event that an earlier delivery has sent. */
export function openDelivery(writes: Writes, ref: DeliveryRef, lastSeq: number) {
  const { shard, requestId, queue, fence } = ref;
  const sent: Increment[] = [];
  return {
    shard,
    requestId,
    queue,
    fence,
    /** `promptTokens`: the provider's prompt, in case another process has to end the request. */
    async append(deltas: readonly Increment[], promptTokens: number): Promise<WriteOutcome> {
      const outcome = await writes.append(ref, lastSeq + deltas.length, deltas, { promptTokens, earlier: sent });
      lastSeq += deltas.length;
      // One by one: a call takes only some 100,000 arguments, and more may pile up while Redis is slow.
      for (const delta of deltas) sent.push(delta);
      return outcome;
    },
    /** Raises the token weight and resolves with what is held. */
    renew: (needed: HoldRequest): Promise<Renewal> => writes.renew(ref, needed),
    /** False: this delivery no longer owns the request. */
    finish: (ending: FinishInput): Promise<boolean> => writes.finish(ref, lastSeq, ending, sent),
  };
}

/** `unreadable`: owned, but without a readable body it can only end. `drop`: ended, or another delivery's. */
type Claim =
  | (ClaimedRequest & { delivery: Delivery })
  | {
      kind: 'unreadable';
      delivery: Delivery;
      retentionMs: number;
      error: Error;
      /** For the list of ended requests. */
      request: Parameters<OnEarlyEnd>[0];
    }
  | { kind: 'drop'; reason: string };

function refOf(claimed: ClaimedRequest, pseudonyms: Pseudonyms | undefined): DeliveryRef {
  const { shard, fence, owner, envelope, sent } = claimed;
  const { requestId, tenantId, keyId, endpoint, request } = envelope;
  const ref: DeliveryRef = { shard, requestId, tenantId, keyId, queue: queueOf(endpoint), fence, owner };
  if (sent > 0) return ref;
  const entityHash = request.entityId === undefined ? undefined : pseudonyms?.of(tenantId, request.entityId);
  return { ...ref, facts: snapshotOf(claimed, entityHash), envelope };
}

/** The record says what the unreadable body would have said. */
async function identify(
  client: RedisClient,
  keyspace: Keyspace,
  { shard, fence, owner }: ClaimFence,
  requestId: string,
) {
  const names = ['tenant', 'key', 'queue', 'ttlMs', 'retentionMs', 'tier', 'billed', 'acceptedAt'];
  const values = await client.hmget(keyspace.shard(shard).record(requestId), ...names);
  const [tenantId = '', keyId = '', queue, life] = values.map((value) => value ?? '');
  const [keep, ...facts] = values.slice(4);
  const ref = { shard, requestId, tenantId, keyId, queue: queueOfRecord(queue), fence, owner };
  return {
    ref,
    request: { requestId, tenantId, keyId, ...factsOfRecord(ref.queue, facts) },
    retentionMs: Number(keep ?? life),
  };
}

function createClaimRequest(client: RedisClient, keyspace: Keyspace, { leaseMs, pseudonyms }: RequestStoreSettings) {
  const script = defineScript(client, 'claim');

  function send(
    { shard, requestId, tenantId, fence }: Claimant,
    owner: string,
    body: 'wanted' | 'known' = 'wanted',
  ): Promise<ScriptReply> {
    const keys = keyspace.shard(shard);
    return script(
      [keys.record(requestId), keys.body(requestId), keys.inflight, keys.account(tenantId)],
      [requestId, fence, leaseMs, owner, keys.account(''), body === 'known' ? 1 : 0],
    );
  }

  return {
    /** Claims again under the same name, without the body, which Redis may have lost. Returns claim.lua's reply. */
    again: (claimant: Claimant, owner: string): Promise<ScriptReply> => send(claimant, owner, 'known'),
    async claim(writes: Writes, claimant: Claimant, { lock, claim }: ClaimingJob = {}): Promise<Claim> {
      const { shard, requestId, fence } = claimant;
      const owner = lock ?? randomBase62(12);
      const reply = claim ?? (await send(claimant, owner));
      if (!Array.isArray(reply) || reply[0] !== 'run') {
        return { kind: 'drop', reason: Array.isArray(reply) ? reply.map(String).join(' ') : String(reply) };
      }
      const values = reply.map(String);
      const own = { shard, fence, owner };
      const envelope = readEnvelope(String(reply[1]));
      if (envelope instanceof UnreadableError) {
        const { ref, ...known } = await identify(client, keyspace, own, requestId);
        const delivery = openDelivery(writes, ref, Number(values[3]));
        return { kind: 'unreadable', error: envelope, delivery, ...known };
      }
      const claimed = toClaimed(own, envelope, values);
      return { ...claimed, delivery: openDelivery(writes, refOf(claimed, pseudonyms), claimed.sent) };
    },
  };
}

export type RequestStore = ReturnType<typeof createRequestStore>;

export interface RequestStoreSettings {
  leaseMs: number;
  /** A client may come back within this time. */
  disconnectGraceMs: number;
  /** True also while the shard's Redis is away. */
  hasReconnectedRecently?: (shard: number, withinMs: number) => boolean;
  /** The outage before Redis came back a moment ago; milliseconds. */
  lastAwayMs?: (shard: number) => number;
  /** Reloads a ledger balance that Redis has lost; never rejects. Running requests go on without it. */
  loadBalance?: (shard: number, tenantId: string) => Promise<void>;
  replays?: EndReplays;
  /** For the records of requests with an entity. */
  pseudonyms?: Pseudonyms;
}

/**
 * Readers renew their leases only some seconds after Redis is back, when their ingress is connected again. A request
 * whose last reader has said since that it left has none.
 */
const READERS_BACK_MS = 20_000;

/** restore-running.lua's reply where Redis lacks the ledger balance, too. */
const BOOKLESS = 2;

/** Restores a running request that Redis lost. False: it may have ended. */
function createRestore(client: RedisClient, keyspace: Keyspace, settings: RequestStoreSettings) {
  const { leaseMs, lastAwayMs = () => 0, loadBalance } = settings;
  const restore = defineScript(client, 'restore-running');
  return async (ref: DeliveryRef): Promise<boolean> => {
    const { facts, envelope } = ref;
    if (facts === undefined || envelope === undefined) return false;
    const known = { facts, envelope, leaseMs, awayMs: lastAwayMs(ref.shard) };
    const reply = await restore(...toPutBackRunning(keyspace, ref, known));
    if (reply === BOOKLESS && facts.mode === 'live') await loadBalance?.(ref.shard, ref.tenantId);
    if (reply !== 0) ref.wasRestored = true;
    return reply !== 0;
  };
}

/** A clock may be set back by this much now and then. */
const CLOCK_MS = 5_000;

/** Milliseconds for which the record's lease still holds; 0: the request does not run. */
async function readLeaseLeftMs(client: RedisClient, record: string, leaseMs: number): Promise<number> {
  const [[state, leased], now] = await Promise.all([
    client.hmget(record, 'state', 'leased'),
    serverTimeMs(client, record),
  ]);
  const leftMs = state === 'running' ? Number(leased ?? 0) - now : 0;
  // No lease is longer: the server's clock was set back, and a living worker would have renewed the lease since.
  return leftMs > leaseMs + CLOCK_MS ? 0 : Math.max(0, leftMs);
}

/** Raises the token weight and resolves with what is held. */
function createRenew(
  client: RedisClient,
  keyspace: Keyspace,
  { leaseMs, disconnectGraceMs, hasReconnectedRecently = () => false }: RequestStoreSettings,
  writeWhole: WriteWhole,
) {
  const renew = defineScript(client, 'renew');
  return async (ref: DeliveryRef, { weight, required, preferred, overdraft }: HoldRequest): Promise<Renewal> => {
    const keys = keyspace.shard(ref.shard);
    const send = async (): Promise<readonly ScriptReply[]> => {
      const reply = await renew(
        [keys.record(ref.requestId), keys.inflight, keys.account(ref.tenantId), keys.tokenWindow(ref.keyId)],
        [
          ref.requestId,
          ref.fence,
          leaseMs,
          disconnectGraceMs,
          Math.ceil(weight),
          ...[required, preferred, overdraft].flatMap(({ micro, tokens }) => [Math.ceil(micro), Math.ceil(tokens)]),
          ref.owner ?? '',
        ],
      );
      return Array.isArray(reply) ? reply : [];
    };
    const [outcome, micro, tokens, unreadMs] = await writeWhole(ref, send, ([found]) => found);
    const held = toHold(micro, tokens);
    if (outcome === 'ok' || outcome === 'cancelled') return { outcome, held };
    if (outcome !== 'abandoned') return { outcome: 'superseded' };
    // Checked after the answer: ioredis may have repeated the command after a reconnect.
    const waitMs = Number(unreadMs) < 0 ? READERS_BACK_MS : Math.min(Number(unreadMs), READERS_BACK_MS);
    return { outcome: hasReconnectedRecently(ref.shard, waitMs) ? 'ok' : 'cancelled', held };
  };
}

export function createRequestStore(client: RedisClient, keyspace: Keyspace, settings: RequestStoreSettings) {
  const { leaseMs, hasReconnectedRecently = () => false } = settings;
  const claiming = createClaimRequest(client, keyspace, settings);
  const append = createCommonAppend(client, keyspace);
  const writeWhole = createRepairs({
    claim: claiming.again,
    restore: createRestore(client, keyspace, settings),
    hasReconnectedRecently,
  });

  const store = {
    claim: (claimant: Claimant, job?: ClaimingJob): Promise<Claim> => claiming.claim(store, claimant, job),

    ...createFinishRequest(client, keyspace, writeWhole, settings.replays),

    /** `lastSeq`: of the last of `deltas`. Also appends earlier text that Redis has lost. */
    async append(
      ref: DeliveryRef,
      lastSeq: number,
      deltas: readonly Increment[],
      { promptTokens = 0, earlier = [] }: AppendMore = {},
    ): Promise<WriteOutcome> {
      const firstSeq = lastSeq - deltas.length - earlier.length;
      const write = async (known: number | undefined) => {
        if (known !== undefined && known < firstSeq) return 'superseded';
        const missing = known === undefined ? deltas : [...earlier, ...deltas].slice(known - firstSeq);
        return append({ ref, lastSeq, deltas: missing, promptTokens });
      };
      const outcome = await writeWhole(ref, write, (found) => found);
      return outcome === 'ok' || outcome === 'cancelled' ? outcome : 'superseded';
    },

    /** Milliseconds until the lease of the request's delivery ends; 0: no delivery has it. */
    leaseLeftMs: (shard: number, requestId: string): Promise<number> =>
      readLeaseLeftMs(client, keyspace.shard(shard).record(requestId), leaseMs),

    renew: createRenew(client, keyspace, settings, writeWhole),
  };
  return store;
}
