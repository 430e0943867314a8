import type { Principal } from '../../../domain/keys/principal.ts';
import type { Keyspace } from '../keyspace.ts';

/** The keys, in this order, of the scripts that end a request which no worker has: void.lua and cancel.lua. */
export function acceptedKeys(
  keyspace: Keyspace,
  requestId: string,
  { shard, keyId, tenantId }: Pick<Principal, 'shard' | 'keyId' | 'tenantId'>,
): string[] {
  const keys = keyspace.shard(shard);
  return [
    keys.record(requestId),
    keys.body(requestId),
    keys.inflight,
    keys.account(tenantId),
    keys.tpmLog(keyId),
    keys.tpmWeights(keyId),
    keys.stream(requestId),
  ];
}
