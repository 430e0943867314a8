-- Sliding windows (docs/decisions/0003-atomic-admission.md). Requests: an exact log, a sorted set of request ids scored
-- by the server's clock, so no minute has more than the limit; two counters let 115 through at a limit of 60. Days: a
-- counter for each minute, dropped when the whole minute has left, so the limit errs on the strict side. Tokens:
-- token-window.lua.
-- A server's clock may be set back, and a replica that takes over has another clock: stored times may then lie ahead of
-- now. Such entries count as if made now, so that they leave when their window is over, not when the clock has caught
-- up (docs/decisions/0005-fencing-and-leases.md).
local MINUTE_MS = 60000
local DAY_MINUTES = 1440

-- The prefix of a shard's keys, taken from the name of its inflight set. Scripts build seldom needed names themselves,
-- because each key passed with a call costs as much as a small command.
local function tag_of(inflight)
  return string.sub(inflight, 1, -#'inflight' - 1)
end

local function now_us()
  local time = redis.call('TIME')
  return time[1] * 1000000 + time[2]
end

local function now_ms()
  return math.floor(now_us() / 1000)
end

-- A number for Redis: rounded, without an exponent. `%d` takes half as long as `%.0f` or as letting Redis format
-- numbers.
local function int(number)
  return string.format('%d', math.floor(number + 0.5))
end

-- A number with two decimals, or as an integer if it is one, which takes a third of the time.
local function decimal(number)
  return string.format(number % 1 == 0 and '%d' or '%.2f', number)
end

-- Adds a field and its value to those that one HSET will write.
local function put(fields, name, value)
  local at = #fields
  fields[at + 1], fields[at + 2] = name, value
end

-- Entries that have left the window stay for a while: skipping them costs less than removing them each time.
local function count_of(log, now)
  return redis.call('ZCOUNT', log, '(' .. int(now - MINUTE_MS), '+inf')
end

-- Extends the life of a log beyond its newest entry, and removes the entries that have left.
local function keep_log(log, now)
  redis.call('ZREMRANGEBYSCORE', log, '-inf', int(now - MINUTE_MS))
  redis.call('PEXPIRE', log, 3 * MINUTE_MS)
end

local function log_request(log, id, now)
  redis.call('ZADD', log, int(now), id)
  -- Reading the time to live costs less than writing it, so it is written about once a minute.
  if redis.call('PTTL', log) < 2 * MINUTE_MS then keep_log(log, now) end
end

-- Changes the time of entries that lie ahead to now. Returns how long the newest one stays.
local function bring_log_back(log, now)
  for _, id in ipairs(redis.call('ZRANGEBYSCORE', log, '(' .. int(now), '+inf')) do
    redis.call('ZADD', log, 'XX', int(now), id)
  end
  keep_log(log, now)
  return MINUTE_MS
end

-- Milliseconds until the newest entry leaves; 0 for an empty window.
local function reset_of(log, now)
  local newest = redis.call('ZRANGE', log, -1, -1, 'WITHSCORES')
  if #newest == 0 then return 0 end
  local at = tonumber(newest[2])
  return at > now and bring_log_back(log, now) or math.max(0, at + MINUTE_MS - now)
end

-- Milliseconds until enough entries have left for one more request.
local function wait_for_place(log, limit, now)
  local blocking = redis.call('ZREVRANGE', log, limit - 1, limit - 1, 'WITHSCORES')
  if #blocking == 0 then return MINUTE_MS end
  local at = tonumber(blocking[2])
  return at > now and bring_log_back(log, now) or at + MINUTE_MS - now
end

-- The counters of the last 24 hours, without minutes that have left.
local function read_day(key, now)
  local minute = math.floor(now / MINUTE_MS)
  local values = redis.call('HMGET', key, 'tail', 'total', minute, 'noted')
  local day = {
    key = key, minute = minute, tail = math.min(tonumber(values[1]) or minute, minute), total = tonumber(values[2]) or 0,
    now = tonumber(values[3]) or 0, noted = values[4],
  }
  local first_kept = minute - DAY_MINUTES
  if day.tail >= first_kept then return day end
  local fields = {}
  for left = day.tail, math.min(first_kept - 1, day.tail + DAY_MINUTES) do fields[#fields + 1] = left end
  for _, count in ipairs(redis.call('HMGET', key, unpack(fields))) do day.total = day.total - (tonumber(count) or 0) end
  redis.call('HDEL', key, unpack(fields))
  day.tail = first_kept
  redis.call('HSET', key, 'tail', day.tail, 'total', day.total)
  return day
end

local function log_day(day)
  if day.noted then redis.call('HDEL', day.key, 'noted') end
  redis.call('HSET', day.key, 'tail', day.tail, 'total', day.total + 1, day.minute, day.now + 1)
  if day.now == 0 then redis.call('PEXPIRE', day.key, (DAY_MINUTES + 2) * MINUTE_MS) end
end

-- Moves requests that were counted in minutes ahead to the present minute. A full day has no others left by then.
local function bring_day_back(day, count)
  local fields, ahead = redis.call('HGETALL', day.key), {}
  for at = 1, #fields, 2 do
    if (tonumber(fields[at]) or 0) > day.minute then ahead[#ahead + 1] = fields[at] end
  end
  for _, field in ipairs(ahead) do redis.call('HDEL', day.key, field) end
  day.now = day.now + count
  redis.call('HSET', day.key, 'tail', day.tail, day.minute, day.now)
  redis.call('PEXPIRE', day.key, (DAY_MINUTES + 2) * MINUTE_MS)
end

-- A search through more minutes than this is not repeated for each refusal.
local FEW_MINUTES = 60

-- Milliseconds until enough minutes have left for one more request. Refused callers may ask again and again at no cost,
-- so a result that took long to find is noted until a request is admitted.
local function wait_for_day(day, limit, now)
  local noted_limit, minute = string.match(day.noted or '', '^(%d+) (%d+)$')
  if not minute or noted_limit + 0 ~= limit or minute + DAY_MINUTES < day.minute or minute + 0 > day.minute then
    local minutes, count = {}, day.total
    for each = day.tail, day.minute do minutes[#minutes + 1] = each end
    minute = day.minute
    for index, counted in ipairs(redis.call('HMGET', day.key, unpack(minutes))) do
      count = count - (counted and counted + 0 or 0)
      if count < limit then
        minute = minutes[index]
        break
      end
    end
    if count >= limit then bring_day_back(day, count) end
    if #minutes > FEW_MINUTES then redis.call('HSET', day.key, 'noted', int(limit) .. ' ' .. int(minute)) end
  end
  return (minute + 1 + DAY_MINUTES) * MINUTE_MS - now
end
