-- Sliding windows (docs/architecture/facts.md section 6). Request counts: an exact log, a sorted set of request ids
-- scored with the server's clock, so the worst true minute is the limit itself. Tokens: the same log beside a hash of
-- weights and their sum. Days: one counter a minute, dropped only when the whole minute has left, so it errs on the
-- strict side.
local MINUTE_MS = 60000
local DAY_MINUTES = 1440

local function now_us()
  local time = redis.call('TIME')
  return tonumber(time[1]) * 1000000 + tonumber(time[2])
end

local function now_ms()
  return math.floor(now_us() / 1000)
end

-- As Redis takes it: without an exponent, and 0 for the -0 that negating 0 gives in Lua.
local function int(number)
  return string.format('%.0f', number + 0)
end

local function count_of(log, now)
  redis.call('ZREMRANGEBYSCORE', log, '-inf', int(now - MINUTE_MS))
  return redis.call('ZCARD', log)
end

-- Lets a window live past its newest member. Asking is cheaper than writing, so it is written about once a minute.
local function keep_alive(key)
  if redis.call('PTTL', key) < 2 * MINUTE_MS then redis.call('PEXPIRE', key, 3 * MINUTE_MS) end
end

local function log_request(log, id, now)
  redis.call('ZADD', log, int(now), id)
  keep_alive(log)
end

-- Milliseconds until the newest member leaves; 0 when the window is empty.
local function reset_of(log, now)
  local newest = redis.call('ZRANGE', log, -1, -1, 'WITHSCORES')
  if #newest == 0 then return 0 end
  return tonumber(newest[2]) + MINUTE_MS - now
end

-- Milliseconds until so many members have left that one more fits.
local function wait_for_place(log, count, limit, now)
  local blocking = redis.call('ZRANGE', log, count - limit, count - limit, 'WITHSCORES')
  if #blocking == 0 then return MINUTE_MS end
  return tonumber(blocking[2]) + MINUTE_MS - now
end

local function tokens_used(log, weights, now)
  while true do
    local left = redis.call('ZRANGEBYSCORE', log, '-inf', int(now - MINUTE_MS), 'LIMIT', 0, 500)
    if #left == 0 then break end
    local sum = 0
    for _, weight in ipairs(redis.call('HMGET', weights, unpack(left))) do
      sum = sum + (tonumber(weight) or 0)
    end
    redis.call('HINCRBY', weights, 'sum', int(-sum))
    redis.call('HDEL', weights, unpack(left))
    redis.call('ZREM', log, unpack(left))
  end
  return tonumber(redis.call('HGET', weights, 'sum')) or 0
end

local function log_tokens(log, weights, id, used, tokens, now)
  redis.call('ZADD', log, int(now), id)
  redis.call('HSET', weights, id, int(tokens), 'sum', int(used + tokens))
  -- Log and weights are only written together, so they age together.
  if redis.call('PTTL', weights) < 2 * MINUTE_MS then
    redis.call('PEXPIRE', weights, 3 * MINUTE_MS)
    redis.call('PEXPIRE', log, 3 * MINUTE_MS)
  end
end

-- Replaces a request's weight while it is in the window; a request that has left it weighs nothing any more.
local function correct_tokens(log, weights, id, tokens, least)
  if not redis.call('ZSCORE', log, id) then return end
  local values = redis.call('HMGET', weights, id, 'sum')
  local old, sum = tonumber(values[1]) or 0, tonumber(values[2]) or 0
  tokens = math.max(tokens, least and old or 0)
  if tokens ~= old then redis.call('HSET', weights, id, int(tokens), 'sum', int(sum + tokens - old)) end
end

-- The same, but never lowers it.
local function raise_tokens(log, weights, id, tokens)
  correct_tokens(log, weights, id, tokens, true)
end

-- Milliseconds until so many tokens have left that `tokens` fit, or that none is left.
local function wait_for_tokens(log, weights, used, tokens, limit, now)
  local from = 0
  while true do
    local members = redis.call('ZRANGE', log, from, from + 199, 'WITHSCORES')
    if #members == 0 then return MINUTE_MS end
    for index = 1, #members, 2 do
      used = used - (tonumber(redis.call('HGET', weights, members[index])) or 0)
      if used <= 0 or used + tokens <= limit then return tonumber(members[index + 1]) + MINUTE_MS - now end
    end
    from = from + 200
  end
end

local function day_count(key, now)
  local first_kept = math.floor(now / MINUTE_MS) - DAY_MINUTES
  local tail = tonumber(redis.call('HGET', key, 'tail'))
  if not tail then return 0 end
  local dropped = 0
  while tail < first_kept do
    local count = redis.call('HGET', key, int(tail))
    if count then
      dropped = dropped + tonumber(count)
      redis.call('HDEL', key, int(tail))
    end
    tail = tail + 1
  end
  redis.call('HSET', key, 'tail', int(tail))
  return redis.call('HINCRBY', key, 'total', int(-dropped))
end

local function log_day(key, now)
  local minute = int(math.floor(now / MINUTE_MS))
  redis.call('HSETNX', key, 'tail', minute)
  redis.call('HINCRBY', key, minute, 1)
  redis.call('HINCRBY', key, 'total', 1)
  redis.call('PEXPIRE', key, (DAY_MINUTES + 2) * MINUTE_MS)
end

local function wait_for_day(key, count, limit, now)
  local minute = tonumber(redis.call('HGET', key, 'tail'))
  local last = math.floor(now / MINUTE_MS)
  while minute < last do
    count = count - (tonumber(redis.call('HGET', key, int(minute))) or 0)
    if count < limit then break end
    minute = minute + 1
  end
  return (minute + 1 + DAY_MINUTES) * MINUTE_MS - now
end
