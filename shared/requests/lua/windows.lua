-- Sliding windows (docs/decisions/0003-atomic-admission.md). Requests: an exact log, a sorted set of ids by the
-- server's clock, so no minute exceeds the limit; two counters let 115 through at a limit of 60. Days: a counter for
-- each minute, dropped when all of it has left, so the limit errs on the strict side. Tokens: below.
-- A clock may be set back, or be another replica's: stored times may then lie ahead of now. Such entries count as made
-- now, so that they leave when their window is over (docs/decisions/0005-fencing-and-leases.md).
local MINUTE_MS = 60000
local DAY_MINUTES = 1440

-- Scripts build seldom needed names themselves: each key passed with a call costs as much as a small command.
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

-- For Redis: rounded, without an exponent. `%d` takes half as long as `%.0f` or as Redis's own formatting.
local function int(number)
  return string.format('%d', math.floor(number + 0.5))
end

-- At most two decimals; an integer's format takes a third of the time.
local function decimal(number)
  return string.format(number % 1 == 0 and '%d' or '%.2f', number)
end

local function put(fields, name, value)
  local at = #fields
  fields[at + 1], fields[at + 2] = name, value
end

-- Entries that have left stay for a while: skipping them costs less than removing them each time.
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

-- Moves entries that lie ahead to now. Returns how long the newest one stays.
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

-- Milliseconds until there is room for one more request.
local function wait_for_place(log, limit, now)
  local blocking = redis.call('ZREVRANGE', log, limit - 1, limit - 1, 'WITHSCORES')
  if #blocking == 0 then return MINUTE_MS end
  local at = tonumber(blocking[2])
  return at > now and bring_log_back(log, now) or at + MINUTE_MS - now
end

-- Covers 24 hours, without minutes that have left.
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

-- Moves requests from minutes ahead to the present one. A full day has no others left by then.
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

-- Milliseconds until there is room for one more request. Refusals cost callers nothing, so a result that took long to
-- find is noted until a request is admitted.
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

-- A key's or tenant's last minute by the second. Field `minute` of its hash has the SUMS, ready to read, and an ENTRY
-- for each second that has any, the oldest first. A second is dropped only when all of it has left, so a limit errs on
-- the strict side by at most a second.
local WINDOW_SECONDS = 60
-- Requests, tokens.
local SUMS = '>I4I6'
local SUMS_BYTES = 10
-- Second, requests, tokens.
local ENTRY = '>I4I4I6'
local ENTRY_BYTES = 14
-- A second may begin between two readings of clocks that agree.
local APART_SECONDS = 1

local function second_of(time)
  return math.floor(time / 1000)
end

-- Counts until all of the second has left.
local function expires_in_ms(second, now)
  return (second + 1 + WINDOW_SECONDS) * 1000 - now
end

local function text_of_window(window)
  return struct.pack(SUMS, window.requests, window.tokens) .. window.entries
end

-- Moves all entries by the seconds that the clock was set back. Written at once, or each look would have to do it
-- again.
local function shift_to_now(hash, window, by)
  local moved = {}
  for at = 1, #window.entries, ENTRY_BYTES do
    local second, requests, tokens = struct.unpack(ENTRY, window.entries, at)
    moved[#moved + 1] = struct.pack(ENTRY, second - by, requests, tokens)
  end
  window.entries, window.second = table.concat(moved), window.second - by
  redis.call('HSET', hash, 'minute', text_of_window(window))
end

-- `text` is field `minute` of a hash (false: none); seconds that have left are dropped.
local function read_window(hash, text, now)
  local present, requests, tokens, newest, from = second_of(now), 0, 0, 0, SUMS_BYTES + 1
  text = text or ''
  if #text > SUMS_BYTES then
    requests, tokens = struct.unpack(SUMS, text)
    newest = struct.unpack('>I4', text, #text - ENTRY_BYTES + 1)
  end
  while from < #text do
    local second, left_requests, left_tokens = struct.unpack(ENTRY, text, from)
    if second >= present - WINDOW_SECONDS then break end
    requests, tokens, from = requests - left_requests, tokens - left_tokens, from + ENTRY_BYTES
  end
  local window = {
    second = math.max(present, newest), requests = requests, tokens = tokens, entries = string.sub(text, from),
  }
  if newest > present + APART_SECONDS then shift_to_now(hash, window, newest - present) end
  return window
end

-- Differences may be negative. Returns false if the window lacks the second.
local function change_second(window, second, more_requests, more_tokens)
  local entries = window.entries
  for at = #entries - ENTRY_BYTES + 1, 1, -ENTRY_BYTES do
    local found, requests, tokens = struct.unpack(ENTRY, entries, at)
    if found < second then return false end
    if found == second then
      local new_requests, new_tokens = math.max(0, requests + more_requests), math.max(0, tokens + more_tokens)
      window.entries = string.sub(entries, 1, at - 1) .. struct.pack(ENTRY, second, new_requests, new_tokens)
        .. string.sub(entries, at + ENTRY_BYTES)
      window.requests, window.tokens = window.requests + new_requests - requests, window.tokens + new_tokens - tokens
      return true
    end
  end
  return false
end

local function count_now(window, requests, tokens)
  if change_second(window, window.second, requests, tokens) then return end
  window.entries = window.entries .. struct.pack(ENTRY, window.second, requests, tokens)
  window.requests, window.tokens = window.requests + requests, window.tokens + tokens
end

-- Milliseconds until no tokens are left. Seconds whose tokens were all given back do not count.
local function reset_of_window(window, now)
  for at = #window.entries - ENTRY_BYTES + 1, 1, -ENTRY_BYTES do
    local second, _, tokens = struct.unpack(ENTRY, window.entries, at)
    if tokens > 0 then return expires_in_ms(second, now) end
  end
  return 0
end

-- `kind`: requests or tokens; returns milliseconds.
local function wait_for_window(window, kind, most, now)
  local left = window[kind]
  for at = 1, #window.entries, ENTRY_BYTES do
    local second, requests, tokens = struct.unpack(ENTRY, window.entries, at)
    left = left - (kind == 'requests' and requests or tokens)
    if left <= most then return expires_in_ms(second, now) end
  end
  return (WINDOW_SECONDS + 1) * 1000
end

-- Adds tokens in the second of acceptance. If the window lacks it, tokens beyond the estimate count now, or long
-- answers would escape limit and ceiling. Returns whether the window has changed, and whether they count now.
local function correct_second(window, accepted_at, more)
  if change_second(window, second_of(accepted_at), 0, more) then return true, false end
  if more <= 0 then return false, false end
  count_now(window, 0, more)
  return true, true
end

-- Corrects the key's tokens in the second of the request's acceptance.
local function correct_tokens(hash, accepted_at, more, now)
  if more == 0 then return end
  local window = read_window(hash, redis.call('HGET', hash, 'minute'), now)
  local is_changed, is_late = correct_second(window, accepted_at, more)
  if is_changed then redis.call('HSET', hash, 'minute', text_of_window(window)) end
  -- The window may have expired meanwhile.
  if is_late then redis.call('PEXPIRE', hash, 3 * MINUTE_MS) end
end

-- For correct_finish_tag: a tenant's window and tags.
local function queue_fields(queue)
  return { 'minute', 'finishTag:' .. queue, 'shift:' .. queue, 'busySince:' .. queue, 'weight', 'ends:own' }
end

-- Corrects the tenant's tokens once a request's use is known. If it has ended, requests that follow it directly start
-- later by the difference; requests before the present busy period change nothing. For one that never ran, or a line of
-- a batch, the next request is credited or charged instead. `values`: queue_fields in the hash `use`; `fields` gets the
-- changes. Returns the corrected busy period.
local function correct_finish_tag(fields, use, values, queue, accepted_at, more, now, has_ended)
  if not values[2] then return nil end
  if more ~= 0 then
    local window = read_window(use, values[1], now)
    if correct_second(window, accepted_at, more) then put(fields, 'minute', text_of_window(window)) end
  end
  local at = #fields
  if not has_ended or queue == 'batch' then
    fields[at + 1], fields[at + 2] = 'debt:' .. queue, int(number_of(redis.call('HGET', use, 'debt:' .. queue)) + more)
  elseif values[4] and accepted_at >= values[4] + 0 then
    local weight = number_of(values[5] or 1)
    local shift = number_of(values[3]) + more / weight
    if more ~= 0 then
      fields[at + 1], fields[at + 2] = 'finishTag:' .. queue, decimal(values[2] + more / weight)
      fields[at + 3], fields[at + 4] = 'shift:' .. queue, decimal(shift)
    end
    return { since = values[4] + 0, shift = shift, weight = weight, ends = number_of(values[6]) }
  end
end

-- The same for a request that never ran.
local function correct_use(use, queue, accepted_at, more, now)
  if more == 0 then return end
  local fields = {}
  correct_finish_tag(fields, use, redis.call('HMGET', use, unpack(queue_fields(queue))), queue, accepted_at, more, now, false)
  if #fields > 0 then redis.call('HSET', use, unpack(fields)) end
end
