-- Tells how long this server has had the shard's data. A server that restarts, or is promoted, gets a new replication
-- id; the first process that asks notes the time.
-- KEYS 1 incarnation of the shard: id, time, and when it was found empty, 2 inflight of the shard. Returns its age in
-- ms.
local now, id = now_ms(), replication_id()
local known, since = unpack(redis.call('HMGET', KEYS[1], 'id', 'since'))
if known ~= id then
  -- No server is known before this one, so its data are as old as itself.
  local up_seconds = string.match(redis.call('INFO', 'server'), 'uptime_in_seconds:(%d+)')
  since = known and now or now - tonumber(up_seconds or 0) * 1000
  redis.call('HSET', KEYS[1], 'id', id, 'since', int(since))
  -- The server may have been emptied: then workers that go on put their requests back (restore-running.lua).
  if not known and redis.call('EXISTS', KEYS[2]) == 0 then redis.call('HSET', KEYS[1], 'emptyAt', int(now)) end
end
return int(math.max(0, now - since))
