-- An answer in Redis: its entries, who reads it, and what its end leaves.
-- Adds one entry to a request's stream and publishes the same text to every ingress that reads it, so that the ingress
-- need not read the stream: only a reader that misses a sequence number does. `writer` names the delivery's claim, so
-- that a reader notices text of another delivery; it is '' for an end that no delivery writes.
local function message_of(id, head, payload)
  return id .. ' ' .. head .. '\n' .. payload
end

local function publish(channels, message)
  if not channels or channels == '' then return end
  -- Usually one ingress reads.
  if not string.find(channels, ',', 1, true) then
    redis.call('@PUBLISH@', channels, message)
    return
  end
  for channel in string.gmatch(channels, '[^,]+') do redis.call('@PUBLISH@', channel, message) end
end

local function head_of(last_seq, writer)
  return writer == '' and last_seq or last_seq .. ' ' .. writer
end

local function add_entry(stream, last_seq, payload, writer)
  if writer == '' then
    redis.call('XADD', stream, last_seq .. '-0', 'd', payload)
  else
    redis.call('XADD', stream, last_seq .. '-0', 'd', payload, 'w', writer)
  end
end

-- An entry of a stream, usually its last: most answers are sent whole.
local function emit(stream, channels, id, last_seq, payload, ttl_ms, writer)
  add_entry(stream, last_seq, payload, writer)
  redis.call('PEXPIRE', stream, ttl_ms)
  publish(channels, message_of(id, head_of(last_seq, writer), payload))
end

-- Stores an answer of one entry as plain text, head and payload: a stream takes 4 KB of memory even when empty.
local function emit_whole(answer, channels, id, entry, ttl_ms)
  redis.call('SET', answer, entry, 'PX', ttl_ms)
  publish(channels, id .. ' ' .. entry)
end

-- Longer than two renewals, see RENEW_READERS_MS in api/relay/hub.ts.
local READER_LEASE_MS = 15000

-- Makes an ingress a reader for as long as its lease: the text is published to its channel. Redis may have come back without
-- the channel, so a renewal adds it again.
local function lease_reader(record, channels, channel, lease_ms, ...)
  if not string.find(',' .. channels .. ',', ',' .. channel .. ',', 1, true) then
    redis.call('HSET', record, 'channels', channels == '' and channel or channels .. ',' .. channel)
  end
  redis.call('HSET', record, 'reader:' .. channel, int(now_ms() + tonumber(lease_ms)), ...)
end

-- Every end of a request leaves something in Redis: leave_end for a request that ended, record_end for whatever else
-- must not run again.
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
