import type { QueueName } from '../../../contracts/jobs.ts';
import { UnreadableError } from '../../../contracts/stored-request.ts';
import { randomBase62 } from '../../../lifecycle/ids.ts';
import type { RedisClient } from '../connection.ts';
import type { Keyspace } from '../keyspace.ts';
import { defineScript } from '../scripts.ts';
import { serverTimeMs } from '../timing.ts';
import type { ScriptReply } from '../scripts.ts';
import { createCommonAppend } from './common-append.ts';
import { toFinishCall } from './finish-call.ts';
import { createPatientWrite } from './patient-writes.ts';
import { knownSeq, readEnvelope, toClaimed, toHeld } from './running-request.ts';
import type { AttemptRef, Claim, ClaimedRequest, Ending, Needed } from './running-request.ts';
import type { MadeClaim, Renewal, WriteOutcome } from './running-request.ts';

export { statusOf } from './running-request.ts';
export type { AttemptRef, Ending, Needed, Renewal, Unreadable, WriteOutcome } from './running-request.ts';

interface AppendMore {
  /** Tokens of what the provider was asked, in case another process has to end the request. */
  promptTokens?: number;
  /** Increments that this attempt appended before, in case Redis has lost some. */
  earlier?: readonly string[];
}

export interface RequestStore {
  /** `made`: the claim that came with the job, so Redis is not asked. */
  claim(shard: number, requestId: string, tenantId: string, attempt: number, made?: MadeClaim): Promise<Claim>;
  /** `lastSeq`: sequence number of the last of `deltas`. Also appends what Redis has lost of the text before. */
  append(ref: AttemptRef, lastSeq: number, deltas: readonly string[], more?: AppendMore): Promise<WriteOutcome>;
  /** Milliseconds until the lease of the request's attempt ends; 0: no attempt has it. */
  leaseLeftMs(shard: number, requestId: string): Promise<number>;
  /** Renews the lease, raises the token weight and resolves with what is held. */
  renew(ref: AttemptRef, needed: Needed): Promise<Renewal>;
  /** `sentSeq`: sequence number of the last event before this. False: this attempt no longer owns the request. */
  finish(ref: AttemptRef, sentSeq: number, ending: Ending): Promise<boolean>;
  /**
   * Repeats the end of a request to a Redis that may have lost its last writes. `known`: it had not lost it. `replayed`: it
   * had. If even the record was lost, only the charge is written again, and the book takes it once. `superseded`: another
   * attempt has the request and ends it.
   */
  replayFinish(ref: AttemptRef, sentSeq: number, ending: Ending): Promise<'known' | 'replayed' | 'superseded'>;
}

export interface RequestStoreSettings {
  leaseMs: number;
  /** How long a client that left may take to come back. */
  disconnectGraceMs: number;
  /** Whether Redis is away, or came back within this time. */
  hasReconnectedRecently?: (withinMs: number) => boolean;
}

/** Readers cannot renew their leases while Redis is away. They do once their ingress is connected again, some seconds later. */
const READERS_BACK_MS = 20_000;

/** What finish.lua returns if the request has ended. */
const ENDED: ReadonlySet<unknown> = new Set(['finished', 'unheard']);

const isSuperseded = (outcome: unknown) => outcome === 'superseded';

/** Redis may come back without claim and text, and again while these are repaired. */
const REPAIRS_MAX = 5;

export function createRequestStore(
  client: RedisClient,
  keyspace: Keyspace,
  settings: RequestStoreSettings,
): RequestStore {
  const claim = defineScript(client, 'claim', ['window', 'account', 'claiming']);
  const append = createCommonAppend(client, keyspace);
  const renew = defineScript(client, 'renew', ['window', 'account', 'use']);
  const parts = ['window', 'account', 'use', 'line', 'pace', 'emit', 'forget', 'keep-nothing'] as const;
  const finish = defineScript(client, 'finish', parts);
  const { hasReconnectedRecently = () => false } = settings;
  const patiently = createPatientWrite(hasReconnectedRecently);
  /** Ends that nobody pays for. Remembered here, as Redis may lose the record that says so. */
  const unheard = new WeakSet<Ending>();

  function sendClaim(shard: number, requestId: string, tenantId: string, attempt: number, owner: string) {
    const keys = keyspace.shard(shard);
    return claim(
      [keys.record(requestId), keys.body(requestId), keys.inflight, keys.account(tenantId)],
      [requestId, attempt, settings.leaseMs, owner, keys.account('')],
    );
  }

  /** Reads from the record what the unreadable body would have said. */
  async function identify(
    { shard, fence, owner }: Pick<ClaimedRequest, 'shard' | 'fence' | 'owner'>,
    requestId: string,
  ) {
    const values = await client.hmget(keyspace.shard(shard).record(requestId), 'tenant', 'key', 'lane', 'life', 'keep');
    const [tenantId = '', keyId = '', queueName, life] = values.map((value) => value ?? '');
    const keep = values[4];
    // Written by admit.lua, for batches only.
    const queue: QueueName = queueName === 'batch' ? 'batch' : 'interactive';
    return { ref: { shard, requestId, tenantId, keyId, queue, fence, owner }, retentionMs: Number(keep ?? life) };
  }

  /** Repeats a claim, under its name, that Redis came back without. False: another attempt has the request. */
  async function ownAgain({ shard, requestId, tenantId, fence, owner }: AttemptRef): Promise<boolean> {
    if (owner === undefined) return false;
    const reply = await sendClaim(shard, requestId, tenantId, fence, owner);
    return Array.isArray(reply) && reply[0] === 'run';
  }

  /** Ends a request, with the text that Redis may have lost. */
  async function endWhole(ref: AttemptRef, sentSeq: number, ending: Ending): Promise<ScriptReply> {
    const { earlier = [], deltas } = ending;
    let [follows, missing] = [sentSeq, deltas];
    for (let tries = 0; tries < REPAIRS_MAX; tries += 1) {
      const outcome = await end(ref, follows, { ...ending, deltas: missing });
      if (outcome === 'accepted') {
        if (!(await ownAgain(ref))) return 'superseded';
        continue;
      }
      const known = knownSeq(outcome);
      if (known === undefined) return outcome;
      // Text of earlier attempts is not known here, so it is not repeated.
      missing = [...earlier, ...deltas].slice(Math.max(0, known - (sentSeq - earlier.length)));
      follows = known;
    }
    return 'superseded';
  }

  /** Appends text, with the text that Redis may have lost. */
  async function appendWhole(
    ref: AttemptRef,
    lastSeq: number,
    deltas: readonly string[],
    { promptTokens = 0, earlier = [] }: AppendMore,
  ): Promise<WriteOutcome> {
    const first = lastSeq - deltas.length - earlier.length;
    let missing = deltas;
    for (let tries = 0; tries < REPAIRS_MAX; tries += 1) {
      const outcome = await append({ ref, lastSeq, deltas: missing, promptTokens });
      if (outcome === 'accepted') {
        if (!(await ownAgain(ref))) return 'superseded';
        continue;
      }
      const known = knownSeq(outcome);
      // append.lua returns no other outcome.
      if (known === undefined) return outcome as WriteOutcome;
      if (known < first) return 'superseded';
      missing = [...earlier, ...deltas].slice(known - first);
    }
    return 'superseded';
  }

  /** Returns what finish.lua says. */
  function end(ref: AttemptRef, sentSeq: number, ending: Ending): Promise<ScriptReply> {
    return finish(...toFinishCall(keyspace, ref, sentSeq, ending));
  }

  return {
    async claim(shard, requestId, tenantId, attempt, made) {
      const owner = made?.owner ?? randomBase62(12);
      const reply = made?.reply ?? (await sendClaim(shard, requestId, tenantId, attempt, owner));
      if (!Array.isArray(reply) || reply[0] !== 'run') {
        return { kind: 'drop', reason: Array.isArray(reply) ? reply.map(String).join(' ') : String(reply) };
      }
      const values = reply.map(String);
      const claimed = { shard, fence: attempt, owner };
      const envelope = readEnvelope(values[1] ?? '');
      if (!(envelope instanceof UnreadableError)) return toClaimed(claimed, envelope, values);
      return {
        kind: 'unreadable',
        error: envelope,
        sent: Number(values[3]),
        ...(await identify(claimed, requestId)),
      };
    },

    append: (ref, lastSeq, deltas, more = {}) => patiently(() => appendWhole(ref, lastSeq, deltas, more), isSuperseded),

    async leaseLeftMs(shard, requestId) {
      const [[state, leased], now] = await Promise.all([
        client.hmget(keyspace.shard(shard).record(requestId), 'state', 'leased'),
        serverTimeMs(client, keyspace.shard(shard).record(requestId)),
      ]);
      return state === 'running' ? Math.max(0, Number(leased ?? 0) - now) : 0;
    },

    async renew(ref, { weight, must, ahead, overrun }) {
      const keys = keyspace.shard(ref.shard);
      const send = async (): Promise<readonly ScriptReply[]> => {
        const reply = await renew(
          [keys.record(ref.requestId), keys.inflight, keys.account(ref.tenantId), keys.keyUse(ref.keyId)],
          [
            ref.requestId,
            ref.fence,
            settings.leaseMs,
            settings.disconnectGraceMs,
            Math.ceil(weight),
            ...[must, ahead, overrun].flatMap(({ micro, tokens }) => [Math.ceil(micro), Math.ceil(tokens)]),
            ref.owner ?? '',
          ],
        );
        return Array.isArray(reply) ? reply : [];
      };
      const [outcome, micro, tokens] = await patiently(
        async () => {
          const reply = await send();
          return reply[0] === 'accepted' && (await ownAgain(ref)) ? send() : reply;
        },
        ([found]) => found === 'superseded' || found === 'accepted',
      );
      const held = toHeld(micro, tokens);
      if (outcome === 'ok' || outcome === 'cancelled') return { outcome, held };
      if (outcome !== 'abandoned') return { outcome: 'superseded' };
      // Asked after the answer has come: ioredis may have repeated the command after a reconnect.
      return { outcome: hasReconnectedRecently(READERS_BACK_MS) ? 'ok' : 'cancelled', held };
    },

    async finish(ref, sentSeq, ending) {
      const outcome = await patiently(() => endWhole(ref, sentSeq, ending), isSuperseded);
      if (outcome === 'unheard') unheard.add(ending);
      return ENDED.has(outcome);
    },

    async replayFinish(ref, sentSeq, ending) {
      const { record, outbox } = keyspace.shard(ref.shard);
      const state = await client.hget(record(ref.requestId), 'state');
      if (state === 'done') return 'known';
      const { settlement, ...rest } = ending;
      const isDue = settlement !== undefined && !unheard.has(ending);
      const due = isDue ? ending : { ...rest, costMicro: 0 };
      const outcome = await patiently(() => endWhole(ref, sentSeq, due), isSuperseded);
      if (ENDED.has(outcome)) return 'replayed';
      if (outcome !== 'missing' && outcome !== 'void') return 'superseded';
      if (isDue) await client.xadd(outbox, '*', 's', JSON.stringify(settlement));
      return 'replayed';
    },
  };
}
