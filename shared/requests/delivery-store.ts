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

/** Increments of one request's answer. */
interface Append {
  ref: DeliveryRef;
  /** Sequence number of the last of `deltas`. */
  lastSeq: number;
  deltas: readonly Increment[];
  /** Tokens of what the provider was asked, in case another process has to end the request. */
  promptTokens: number;
}

interface Waiting extends Append {
  resolve: (outcome: ScriptReply) => void;
  reject: (error: unknown) => void;
}

/**
 * How long text waits for that of other requests. A call costs more than what it carries: with this wait, 200 live streams
 * of 50 chunks per second make 200 calls per second, not 10,000.
 */
const GATHER_MS = 5;
/** The most requests in one call, which must not hold up Redis: it takes less than a millisecond. */
const REQUESTS_MAX = 64;

/** Gathers texts for common calls: `send` gets at most REQUESTS_MAX of them. */
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
 * Appends the text of all running requests of a shard in common calls (append.lua). A call leaves at the end of the event
 * loop's turn, or 5 ms after the one before; a request's first text does not wait. Resolves with what the script returns
 * for this request.
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
  /** Tokens of what the provider was asked, in case another process has to end the request. */
  promptTokens?: number;
  /** Increments that this delivery appended before, in case Redis has lost some. */
  earlier?: readonly Increment[];
}

/** The delivery that claims a request. */
type Claimant = Pick<DeliveryRef, 'shard' | 'requestId' | 'tenantId' | 'fence'>;

/** The job under which a request is claimed. */
interface ClaimingJob {
  /** Names the claim. Absent: a request that is taken over beside its queue has no job. */
  lock?: string;
  /** The reply of claiming.lua, if the request was claimed when its job was taken, so that Redis is not asked again. */
  claim?: ScriptReply[] | undefined;
}

/** The store that a delivery writes to. */
interface Writes {
  append(ref: DeliveryRef, lastSeq: number, deltas: readonly Increment[], more: AppendMore): Promise<WriteOutcome>;
  renew(ref: DeliveryRef, needed: HoldRequest): Promise<Renewal>;
  finish(ref: DeliveryRef, sentSeq: number, ending: FinishInput, earlier: readonly Increment[]): Promise<boolean>;
}

/**
 * A delivery that owns its request. It knows its fence and its claim, the text that it has sent, and the record: each write
 * brings back what Redis has lost of them (rollback.ts).
 */
export type Delivery = ReturnType<typeof openDelivery>;

/** `lastSeq`: sequence number of the last event that an earlier delivery has sent. */
export function openDelivery(writes: Writes, ref: DeliveryRef, lastSeq: number) {
  const { shard, requestId, queue, fence } = ref;
  const sent: Increment[] = [];
  return {
    shard,
    requestId,
    queue,
    fence,
    /** `promptTokens`: of what the provider was asked, in case another process has to end the request. */
    async append(deltas: readonly Increment[], promptTokens: number): Promise<WriteOutcome> {
      const outcome = await writes.append(ref, lastSeq + deltas.length, deltas, { promptTokens, earlier: sent });
      lastSeq += deltas.length;
      // One by one: a call takes only some 100,000 arguments, and more may pile up while Redis is slow.
      for (const delta of deltas) sent.push(delta);
      return outcome;
    },
    /** Renews the lease, raises the token weight and resolves with what is held. */
    renew: (needed: HoldRequest): Promise<Renewal> => writes.renew(ref, needed),
    /** Ends the request. False: this delivery no longer owns it. */
    finish: (ending: FinishInput): Promise<boolean> => writes.finish(ref, lastSeq, ending, sent),
  };
}

/**
 * `unreadable`: this delivery owns the request but cannot read its body, so it can only end it. `drop`: another delivery has
 * it, or it has ended.
 */
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

/** Reads from the record what the unreadable body would have said. */
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

/** The owner of a request and its body, in one call. */
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
    /** Repeats a claim under its name, without the body, which Redis may have lost. Resolves with the reply of claim.lua. */
    again: (claimant: Claimant, owner: string): Promise<ScriptReply> => send(claimant, owner, 'known'),
    /** Takes the request under a fence. */
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
  /** A client that left may come back within this time. */
  disconnectGraceMs: number;
  /** Whether the shard's Redis is away, or came back within this time. */
  hasReconnectedRecently?: (shard: number, withinMs: number) => boolean;
  /** For how long the shard's Redis was away before it came back a moment ago; milliseconds. */
  lastAwayMs?: (shard: number) => number;
  /** Brings a ledger balance to a Redis that has lost it; never rejects. Without it what runs goes on until it is there. */
  loadBalance?: (shard: number, tenantId: string) => Promise<void>;
  replays?: EndReplays;
  /** For the records of requests with an entity. */
  pseudonyms?: Pseudonyms;
}

/**
 * Readers cannot renew their leases while Redis is away. They do once their ingress is connected again, some seconds later.
 * A request whose last reader has said since that it left has none.
 */
const READERS_BACK_MS = 20_000;

/** The reply of restore-running.lua where Redis lacks the ledger balance, too. */
const BOOKLESS = 2;

/** Puts a running request back that Redis has lost. False: it may have ended. */
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

/** By how much a clock is put back now and then. */
const CLOCK_MS = 5_000;

/** For how long the record's lease still holds; 0 where the request does not run. */
async function readLeaseLeftMs(client: RedisClient, record: string, leaseMs: number): Promise<number> {
  const [[state, leased], now] = await Promise.all([
    client.hmget(record, 'state', 'leased'),
    serverTimeMs(client, record),
  ]);
  const leftMs = state === 'running' ? Number(leased ?? 0) - now : 0;
  // No lease is longer: the server's clock has been put back, and a worker that lives would have renewed it since.
  return leftMs > leaseMs + CLOCK_MS ? 0 : Math.max(0, leftMs);
}

/** Renews the lease, raises the token weight and resolves with what is held. */
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
    // Asked after the answer has come: ioredis may have repeated the command after a reconnect.
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

    /** `lastSeq`: sequence number of the last of `deltas`. Also appends what Redis has lost of the text before. */
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
