-- An answer in Redis: its entries, who reads it, and what its end leaves.
-- Publishes each entry to every ingress that reads the request: only a reader that misses a sequence number reads the
-- stream. `writer` names the delivery's claim, so that a reader notices another delivery's text; '' for an end that no
-- delivery writes.
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

-- Usually the stream's last entry: most answers are sent whole.
local function emit(stream, channels, id, last_seq, payload, ttl_ms, writer)
  add_entry(stream, last_seq, payload, writer)
  redis.call('PEXPIRE', stream, ttl_ms)
  publish(channels, message_of(id, head_of(last_seq, writer), payload))
end

-- One entry as plain text, head and payload: even an empty stream takes 4 KB of memory.
local function emit_whole(answer, channels, id, entry, ttl_ms)
  redis.call('SET', answer, entry, 'PX', ttl_ms)
  publish(channels, id .. ' ' .. entry)
end

-- Longer than two renewals, see RENEW_READERS_MS in api/relay/hub.ts.
local READER_LEASE_MS = 15000

-- Publishes the text to the ingress's channel while its lease lasts. Redis may have come back without the channel, so a
-- renewal adds it again.
local function lease_reader(record, channels, channel, lease_ms, ...)
  if not string.find(',' .. channels .. ',', ',' .. channel .. ',', 1, true) then
    redis.call('HSET', record, 'channels', channels == '' and channel or channels .. ',' .. channel)
  end
  redis.call('HSET', record, 'reader:' .. channel, int(now_ms() + tonumber(lease_ms)), ...)
end

-- Every end leaves something in Redis: leave_end for a request that ended, record_end for what else must not run again.
-- Readers have this long to read an end that is not kept: longer than a client may stall (api/relay/answer.ts).
-- Their ingress usually deletes the answer sooner.
local READING_MS = 60000
-- Each renewal of a reader (renew-reader.lua) extends an expired answer by the lease.
local READ_ON_MS = 15000
-- A tombstone: late deliveries, repeats and look-ups learn only that the request has ended.
local GONE_MS = 3600000
-- MongoDB may have a body (an intent) for the first time, a worker may restore one within the second.
local INTENT_MS = 86400000
local RESTORE_MS = 900000

local function is_read(record, now)
  for channel in string.gmatch(redis.call('HGET', record, 'channels') or '', '[^,]+') do
    if number_of(redis.call('HGET', record, 'reader:' .. channel)) > now then return true end
  end
  return false
end

-- Readers can read to the end, however soon the answer expires for others.
local function keep_for_readers(stream, answer)
  redis.call('PEXPIRE', stream, READ_ON_MS, 'GT')
  redis.call('PEXPIRE', answer, READ_ON_MS, 'GT')
end

-- For the few tenants that keep nothing, or answers for less than a minute. Call it once the answer has its time to
-- live.
local function keep_briefly(record, stream, answer, id, now, retention)
  local is_being_read = is_read(record, now)
  if retention ~= '0' then
    if is_being_read then keep_for_readers(stream, answer) end
    redis.call('PEXPIRE', record, retention)
    return
  end
  if not is_being_read then redis.call('UNLINK', stream, answer) end
  local name, retries = unpack(redis.call('HMGET', record, 'idempotency', 'retries'))
  -- The list's name comes from the body.
  if retries then forget_retries(retries, id) end
  local first = name and redis.call('GET', name)
  -- The key stays taken, so that a repeat does not run again. Its fingerprint would confirm a guessed body, so it goes.
  if first and string.sub(first, 1, #id) == id then redis.call('SET', name, (string.gsub(first, ' %S+', ' -', 1)), 'KEEPTTL') end
  redis.call('HDEL', record, 'metadata')
  redis.call('HSET', record, 'gone', 1)
  redis.call('PEXPIRE', record, GONE_MS)
end

-- The record may expire sooner than this mark: recovery would run the request again as a lost one.
local function record_end(tag, id, kept_ms)
  redis.call('SET', tag .. 'e:' .. id, '1', 'PX', int(kept_ms))
end

-- `own`, the record's retention, is rare: a request that may have an intent, or a tenant with a shorter retention.
-- `on_disconnect` applies without readers; requests with an intent finish.
local function record_short_end(tag, id, retention, on_disconnect)
  local kept_ms = on_disconnect == 'finish' and INTENT_MS or RESTORE_MS
  if retention ~= '0' and retention + 0 < kept_ms then record_end(tag, id, kept_ms) end
end

-- For each quarter of an hour a text with the ids, each with a space behind it, of a tenant's ended requests that
-- expire then; it expires itself. A tenant's deletion reads it (request-eraser.ts). Appending is the cheapest write.
local LEFT_MS = 900000

local function list_left(tag, account, id, retention, now)
  local until_part = math.floor((now + math.max(retention, READING_MS)) / LEFT_MS) + 1
  local list = tag .. 'left:' .. string.sub(account, #tag + 6) .. ':' .. int(until_part)
  if redis.call('APPEND', list, id .. ' ') == #id + 1 then redis.call('PEXPIREAT', list, int(until_part * LEFT_MS)) end
end

-- Call it once the answer has its time to live. `account`: key of the tenant's account, `acct:` and its id. `own` and
-- `on_disconnect`: `retentionMs` and `onDisconnect` of the record.
local function leave_end(tag, account, id, record, stream, answer, retention, own, on_disconnect, now)
  list_left(tag, account, id, retention + 0, now)
  if own then record_short_end(tag, id, retention, on_disconnect) end
  if retention + 0 < READING_MS then
    keep_briefly(record, stream, answer, id, now, retention)
  else
    redis.call('PEXPIRE', record, retention)
  end
end
