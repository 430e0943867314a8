-- Restores a running request that Redis has lost completely, so that its delivery goes on.
-- KEYS 1 to 9 those of restore_request (the last is the account), 10 body, 11 inflight, 12 open requests of the tenant,
-- 13 incarnation of the shard (incarnation.lua), 14 note that the request has ended
-- ARGV 1 short texts, each followed by a NUL: see the locals below, 2 body, then what restore_request knows
-- Returns 1, also after another call of this delivery; 2 if Redis lacks the ledger balance, too; 0 if Redis has another
-- state, the end or another request with its Idempotency-Key, or cannot have lost it: it was accepted too long ago, or
-- only this worker was cut off from a living server. Then it has ended and expired.
local LOST_MS = 10000
-- Longer than two servers' clocks differ.
local CLOCKS_MS = 10000

-- `ttl`: longest life of text and body; `retention`, `lease` in ms; `queue`: its name; `away`: ms for which Redis has
-- just been unavailable, and nobody could end a request.
local id, fence, owner, lease, ttl, retention, queue, accepted_at, seq, away, claimed_at =
  struct.unpack('sssssssssss', ARGV[1])
local now = now_ms()
local function restored_reply()
  return redis.call('HEXISTS', KEYS[9], 'ledgerBalance') == 1 and 1 or 2
end

local known_fence, known_owner = unpack(redis.call('HMGET', KEYS[1], 'fence', 'owner'))
if known_owner and known_owner == owner and known_fence == fence then return restored_reply() end
if redis.call('EXISTS', KEYS[1], KEYS[14]) > 0 or now - accepted_at > LOST_MS + away then return 0 end
-- A server that has lost all it had has no incarnation, or that of an earlier one.
local incarnation, since, empty_at = unpack(redis.call('HMGET', KEYS[13], 'id', 'since', 'emptyAt'))
if incarnation == replication_id() and math.max(since, empty_at or 0) + CLOCKS_MS < claimed_at + 0 then return 0 end
-- The caller has sent the request again under the same Idempotency-Key.
local first = ARGV[3] ~= '' and redis.call('GET', KEYS[4])
if first and string.sub(first, 1, #id) ~= id then return 0 end
restore_request(id, KEYS, fence, owner, queue, retention + 0, { unpack(ARGV, 3) })
local leased = int(now + lease)
redis.call('HSET', KEYS[1], 'ttlMs', ttl, 'leased', leased)
redis.call('SET', KEYS[10], ARGV[2], 'PX', ttl)
redis.call('ZADD', KEYS[11], leased, id)
if queue ~= 'batch' then
  redis.call('ZADD', KEYS[12], seq, id)
  -- The known number of open requests may be too low, so the next admission counts them.
  redis.call('HDEL', KEYS[9], 'open')
end
return restored_reply()
