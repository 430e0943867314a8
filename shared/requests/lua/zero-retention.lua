-- This file says what every end of a request leaves in Redis: leave_end for a request that ended, record_end for
-- whatever else must not run again.
-- If nothing is kept, readers have this long to read the end: longer than a client may stall (api/relay/answer.ts).
-- Their ingress usually deletes the answer sooner.
local READING_MS = 60000
-- An answer whose retention is over stays this long after each renewal of a reader (renew-reader.lua): as long as the lease.
local READ_ON_MS = 15000
-- The record becomes a tombstone: late deliveries, repeats and look-ups learn only that the request has ended.
local GONE_MS = 3600000
-- MongoDB may have the body of a request (an intent) for the first time, a worker may restore one within the second.
local INTENT_MS = 86400000
local RESTORE_MS = 900000

local function is_read(record, now)
  for channel in string.gmatch(redis.call('HGET', record, 'channels') or '', '[^,]+') do
    if number_of(redis.call('HGET', record, 'reader:' .. channel)) > now then return true end
  end
  return false
end

-- Whoever is reading an answer can read it to its end, however soon it expires for everybody else.
local function keep_for_readers(stream, answer)
  redis.call('PEXPIRE', stream, READ_ON_MS, 'GT')
  redis.call('PEXPIRE', answer, READ_ON_MS, 'GT')
end

-- Few tenants keep nothing, or keep answers for less than a minute. To be called once the answer has its time to live.
local function keep_briefly(record, stream, answer, id, now, retention)
  local is_being_read = is_read(record, now)
  if retention ~= '0' then
    if is_being_read then keep_for_readers(stream, answer) end
    redis.call('PEXPIRE', record, retention)
    return
  end
  if not is_being_read then redis.call('UNLINK', stream, answer) end
  local name, retries = unpack(redis.call('HMGET', record, 'idempotency', 'retries'))
  -- Its name is made from the body.
  if retries then forget_retries(retries, id) end
  local first = name and redis.call('GET', name)
  -- The key stays taken, so that a repeat does not run again. Its fingerprint is removed: it would confirm a guessed
  -- body.
  if first and string.sub(first, 1, #id) == id then redis.call('SET', name, (string.gsub(first, ' %S+', ' -', 1)), 'KEEPTTL') end
  redis.call('HDEL', record, 'metadata')
  redis.call('HSET', record, 'gone', 1)
  redis.call('PEXPIRE', record, GONE_MS)
end

-- Records that a request has ended, beside its record, which may expire sooner: recovery would take the request for a lost
-- one and run it again.
local function record_end(tag, id, kept_ms)
  redis.call('SET', tag .. 'e:' .. id, '1', 'PX', int(kept_ms))
end

-- Few requests have a retention of their own (`own`, as the record has it): one that may have an intent, or one of a
-- tenant with a shorter retention. `on_disconnect` is what happens without readers; requests with an intent
-- finish.
local function record_short_end(tag, id, retention, on_disconnect)
  local kept_ms = on_disconnect == 'finish' and INTENT_MS or RESTORE_MS
  if retention ~= '0' and retention + 0 < kept_ms then record_end(tag, id, kept_ms) end
end

-- A text for each quarter of an hour in which something of ended requests of a tenant expires, and the text with it: their
-- ids, each with a space behind it. A deletion of the whole tenant reads them (request-eraser.ts). Appending costs less
-- than any other write, and nobody has to tidy up.
local LEFT_MS = 900000

local function list_left(tag, account, id, retention, now)
  local until_part = math.floor((now + math.max(retention, READING_MS)) / LEFT_MS) + 1
  local list = tag .. 'left:' .. string.sub(account, #tag + 6) .. ':' .. int(until_part)
  if redis.call('APPEND', list, id .. ' ') == #id + 1 then redis.call('PEXPIREAT', list, int(until_part * LEFT_MS)) end
end

-- To be called once the answer has its time to live. `account`: the key of the tenant's account, `acct:` and its id.
-- `own` and `on_disconnect` are the fields `retentionMs` and `onDisconnect` of the record.
local function leave_end(tag, account, id, record, stream, answer, retention, own, on_disconnect, now)
  list_left(tag, account, id, retention + 0, now)
  if own then record_short_end(tag, id, retention, on_disconnect) end
  if retention + 0 < READING_MS then
    keep_briefly(record, stream, answer, id, now, retention)
  else
    redis.call('PEXPIRE', record, retention)
  end
end
