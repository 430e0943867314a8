-- For requests whose tenant keeps nothing (retention 0): what the end leaves behind.
-- Readers have this long to read the end: longer than a client may stall (api/relay/forward.ts). Their ingress usually deletes
-- the answer sooner.
local READING_MS = 60000
-- The record becomes a tombstone: late attempts, repeats and look-ups learn that the request has ended, and nothing else.
local GONE_MS = 3600000

local function is_read(record, now)
  for channel in string.gmatch(redis.call('HGET', record, 'channels') or '', '[^,]+') do
    if number_of(redis.call('HGET', record, 'reader:' .. channel)) > now then return true end
  end
  return false
end

-- @seldom
-- Few tenants keep nothing.
local function keep_nothing(record, stream, answer, id, now)
  if not is_read(record, now) then redis.call('UNLINK', stream, answer) end
  local name = redis.call('HGET', record, 'idempotency')
  local first = name and redis.call('GET', name)
  -- The key stays taken, so that a repeat does not run again. Its fingerprint goes: it would confirm a guess of the body.
  if first and string.sub(first, 1, #id) == id then redis.call('SET', name, (string.gsub(first, ' %S+', ' -', 1)), 'KEEPTTL') end
  redis.call('HDEL', record, 'metadata')
  redis.call('HSET', record, 'gone', 1)
  redis.call('PEXPIRE', record, GONE_MS)
end
