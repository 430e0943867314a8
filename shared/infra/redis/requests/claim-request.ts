import { UnreadableError } from '../../../contracts/stored-request.ts';
import { randomBase62 } from '../../../lifecycle/ids.ts';
import type { RedisClient } from '../connection.ts';
import type { Keyspace } from '../keyspace.ts';
import { defineScript } from '../scripts.ts';
import type { ScriptReply } from '../scripts.ts';
import { getLongBody } from './long-bodies.ts';
import { queueOfRecord, readEnvelope, toClaimed } from './running-request.ts';
import type { Claim, ClaimedRequest, DeliveryRef, MadeClaim } from './running-request.ts';

/** The delivery that claims a request. */
type Claimant = Pick<DeliveryRef, 'shard' | 'requestId' | 'tenantId' | 'fence'>;

export interface ClaimRequest {
  /** `made`: the claim that came with the job, so Redis is not asked. */
  claim(claimant: Claimant, made?: MadeClaim): Promise<Claim>;
  /** Repeats a claim under its name, without the body, which Redis may have lost. Resolves with the reply of claim.lua. */
  again(claimant: Claimant, owner: string): Promise<ScriptReply>;
}

/** The owner of a request and its body, in one call where the body is short. */
export function createClaimRequest(client: RedisClient, keyspace: Keyspace, leaseMs: number): ClaimRequest {
  const script = defineScript(client, 'claim', ['window', 'account', 'claiming']);

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

  /** Claims, unless that came with the job, and reads the body: a long one by itself, see long-bodies.ts. */
  async function claimWithBody(
    claimant: Claimant,
    owner: string,
    made?: ScriptReply[],
  ): Promise<{ reply: ScriptReply; body: string }> {
    const reply = made ?? (await send(claimant, owner));
    const isClaimed = Array.isArray(reply) && reply[0] === 'run';
    const body = isClaimed ? String(reply[1]) : '';
    if (!isClaimed || body !== '') return { reply, body };
    const long = await getLongBody(client, keyspace.shard(claimant.shard).body(claimant.requestId));
    if (long !== undefined) return { reply, body: long };
    // The request has ended meanwhile, or Redis came back without it: a second claim says which.
    return claimWithBody(claimant, owner);
  }

  /** Reads from the record what the unreadable body would have said. */
  async function identify(
    { shard, fence, owner }: Pick<ClaimedRequest, 'shard' | 'fence' | 'owner'>,
    requestId: string,
  ) {
    const values = await client.hmget(keyspace.shard(shard).record(requestId), 'tenant', 'key', 'lane', 'life', 'keep');
    const [tenantId = '', keyId = '', lane, life] = values.map((value) => value ?? '');
    const keep = values[4];
    return {
      ref: { shard, requestId, tenantId, keyId, queue: queueOfRecord(lane), fence, owner },
      retentionMs: Number(keep ?? life),
    };
  }

  return {
    again: (claimant, owner) => send(claimant, owner, 'known'),
    async claim(claimant, made) {
      const { shard, requestId, fence } = claimant;
      const owner = made?.owner ?? randomBase62(12);
      const { reply, body } = await claimWithBody(claimant, owner, made?.reply);
      if (!Array.isArray(reply) || reply[0] !== 'run') {
        return { kind: 'drop', reason: Array.isArray(reply) ? reply.map(String).join(' ') : String(reply) };
      }
      const values = reply.map(String);
      const claimed = { shard, fence, owner };
      const envelope = readEnvelope(body);
      if (!(envelope instanceof UnreadableError)) return toClaimed(claimed, envelope, values);
      return {
        kind: 'unreadable',
        error: envelope,
        sent: Number(values[3]),
        ...(await identify(claimed, requestId)),
      };
    },
  };
}
