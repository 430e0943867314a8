-- A reader that stands for ingresses not yet heard from: without it, an answer of which nothing is kept would be deleted before
-- they ask. It also marks a request that was put back (void.lua). Ends are published to it, so it has the shard's hash tag: the
-- service's user may publish to no other channel, and a node of a cluster knows none of other slots.
local function unknown_reader(record)
  return string.match(record, '^{[^}]*}') .. '?'
end
local UNKNOWN_READER_MS = 15000

-- @seldom
-- Counts a request again where limits on requests have counted it: those of its key, its endpoint and its tenant, whose
-- window has it as of now. Only keys with a limit for the day have its counters.
local function count_again(id, minute_log, throttle_log, day_key, account, lane, accepted_at)
  if lane ~= 'batch' then
    log_request(minute_log, id, accepted_at)
    log_request(throttle_log, id, accepted_at)
    local now, fields = now_ms(), {}
    if now - accepted_at < MINUTE_MS then
      add_as_of_now(fields, account, redis.call('HGET', account, 'u'), 1, 0, now)
      redis.call('HSET', account, unpack(fields))
    end
  end
  if redis.call('EXISTS', day_key) == 1 then log_day(read_day(day_key, accepted_at)) end
end

-- @seldom
-- Writes the record anew of a request of which Redis has lost everything, as its delivery knows it: running, without text.
-- `keys`: record, stream, whole answer, idempotency record and requests of the entity (the record where there is none),
-- requests of the key in the last minute, those of the endpoint, those of the key in the last day, account.
-- `known`: value of the idempotency record ('': none), its lifetime in ms, time of acceptance, then names and values of the
-- record in turn.
local function put_back(id, keys, fence, owner, lane, retention, known)
  local record, stream, answer, named, entity, minute_log, throttle_log, day_key, account = unpack(keys)
  local reader = unknown_reader(record)
  redis.call('DEL', record, stream, answer)
  redis.call('HSET', record, 'state', 'running', 'fence', fence, 'owner', owner, 'sent', '0', 'hold', '0', 'holdTokens', '0',
    'channels', reader, 'reader:' .. reader, int(now_ms() + UNKNOWN_READER_MS), unpack(known, 4))
  count_again(id, minute_log, throttle_log, day_key, account, lane, known[3] + 0)
  -- Another request may have the Idempotency-Key by now.
  if known[1] ~= '' then
    redis.call('SET', named, known[1], 'PX', known[2], 'NX')
    if string.sub(redis.call('GET', named), 1, #id) == id then redis.call('HSET', record, 'idempotency', named) end
  end
  -- Longer than admission keeps what it lists: nothing in the list may go sooner for this.
  if entity ~= record then
    local listed_ms = 2 * known[2] + retention
    redis.call('ZADD', entity, int(now_ms() + listed_ms), id)
    redis.call('PEXPIRE', entity, int(listed_ms))
  end
end

-- @seldom
-- What a repeated end puts back: a request without a record, with a tombstone of which nobody was told (void.lua), or with an
-- answer that was put back from MongoDB (restore-answer.lua), which has no fence and says nothing of its charge.
local function put_back_ended(id, keys, fence, owner, lane, retention, known)
  local state, untold, known_fence = unpack(redis.call('HMGET', keys[1], 'state', 'untold', 'fence'))
  if not state or state == 'void' and untold or state == 'done' and not known_fence then
    put_back(id, keys, fence, owner, lane, retention, known)
  end
end
