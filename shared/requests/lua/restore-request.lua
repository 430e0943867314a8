-- Names this server's history of writes: a server that restarts, or is promoted, has another one.
local function replication_id()
  return string.match(redis.call('INFO', 'replication'), 'master_replid:(%x+)') or ''
end

-- A reader that stands for ingresses not yet heard from: without it, an answer that is not kept would be deleted before
-- they ask. It also marks a restored request (void.lua). Its name has the shard's hash tag, as ends are published to
-- it: the service's user may publish to no other channel, and cluster nodes know none of other slots.
local function unknown_reader(record)
  return string.match(record, '^{[^}]*}') .. '?'
end
local UNKNOWN_READER_MS = 15000

-- Counts a request again in its key's and endpoint's windows, and now in its tenant's. Only keys with a daily limit
-- have day counters.
local function count_again(id, minute_log, throttle_log, day_key, account, queue, accepted_at)
  if queue ~= 'batch' then
    log_request(minute_log, id, accepted_at)
    log_request(throttle_log, id, accepted_at)
    local now = now_ms()
    if now - accepted_at < MINUTE_MS then
      local window = read_window(account, redis.call('HGET', account, 'minute'), now)
      count_now(window, 1, 0)
      redis.call('HSET', account, 'minute', text_of_window(window))
    end
  end
  if redis.call('EXISTS', day_key) == 1 then log_day(read_day(day_key, accepted_at)) end
end

-- Rewrites a record that Redis lost, as its delivery knows it: running, without text.
-- `keys`: record, stream, whole answer, idempotency record and requests of the entity (the record if there is none),
-- requests of the key in the last minute, those of the endpoint, those of the key in the last day, account.
-- `known`: value of the idempotency record ('': none), its lifetime in ms, acceptance, names and values of the record
-- in turn.
local function restore_request(id, keys, fence, owner, queue, retention, known)
  local record, stream, answer, named, entity, minute_log, throttle_log, day_key, account = unpack(keys)
  local reader = unknown_reader(record)
  redis.call('DEL', record, stream, answer)
  redis.call('HSET', record, 'state', 'running', 'fence', fence, 'owner', owner, 'lastSeq', '0', 'hold', '0', 'holdTokens', '0',
    'channels', reader, 'reader:' .. reader, int(now_ms() + UNKNOWN_READER_MS), unpack(known, 4))
  count_again(id, minute_log, throttle_log, day_key, account, queue, known[3] + 0)
  -- Another request may have the Idempotency-Key by now.
  if known[1] ~= '' then
    redis.call('SET', named, known[1], 'PX', known[2], 'NX')
    if string.sub(redis.call('GET', named), 1, #id) == id then redis.call('HSET', record, 'idempotency', named) end
  end
  -- Longer than admission's entries, so that none of them lives shorter.
  if entity ~= record then
    local listed_ms = 2 * known[2] + retention
    redis.call('ZADD', entity, int(now_ms() + listed_ms), id)
    redis.call('PEXPIRE', entity, int(listed_ms))
  end
end

-- Restores a request before a repeated end, if it has no record, a tombstone of which no caller was told (void.lua), or
-- MongoDB's answer (restore-answer.lua), which has no fence and does not know its charge.
local function restore_ended(id, keys, fence, owner, queue, retention, known)
  local state, voidUnconfirmed, known_fence = unpack(redis.call('HMGET', keys[1], 'state', 'voidUnconfirmed', 'fence'))
  if not state or state == 'void' and voidUnconfirmed or state == 'done' and not known_fence then
    restore_request(id, keys, fence, owner, queue, retention, known)
  end
end
