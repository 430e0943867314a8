-- For requests whose tenant keeps nothing (retention 0): what the end leaves behind.
-- Whoever reads when it ends has as long as a client may stall (api/relay/forward.ts), and its ingress deletes sooner.
local READING_MS = 60000
-- A tombstone: late attempts, repeats and look-ups find that the request has ended, and nothing of its text.
local GONE_MS = 3600000

local function is_read(record, now)
  for channel in string.gmatch(redis.call('HGET', record, 'channels') or '', '[^,]+') do
    if number_of(redis.call('HGET', record, 'reader:' .. channel)) > now then return true end
  end
  return false
end

-- Seldom: few tenants keep nothing.
local function keep_nothing(record, stream, answer, id, now)
  if not is_read(record, now) then redis.call('UNLINK', stream, answer) end
  local name = redis.call('HGET', record, 'idempotency')
  local first = name and redis.call('GET', name)
  -- The claim stays, so that a repeat does not run again; the fingerprint would confirm a guess of the body.
  if first and string.sub(first, 1, #id) == id then redis.call('SET', name, (string.gsub(first, ' %S+', ' -', 1)), 'KEEPTTL') end
  redis.call('HDEL', record, 'metadata')
  redis.call('HSET', record, 'gone', 1)
  redis.call('PEXPIRE', record, GONE_MS)
end
