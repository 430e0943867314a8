-- What all requests of a tenant take together: requests and tokens of the last minute, counted by the second, and how
-- far its turns have come. A second is dropped only when all of it has left the minute, so the ceilings err on the
-- strict side by at most a second and are never exceeded in any true minute.
local WINDOW_SECONDS = 60

local function second_of(time)
  return math.floor(time / 1000)
end

local function read_use(use, lane, now)
  local second = second_of(now)
  local values = redis.call('HMGET', use, 'tail', 'r', 't', 'r' .. second, 't' .. second, 'f:' .. lane, 'o:' .. lane,
    's:' .. lane, 'w')
  local read = {
    key = use, lane = lane, second = second, tail = tonumber(values[1]), requests = number_of(values[2]),
    tokens = number_of(values[3]), requests_now = number_of(values[4]), tokens_now = number_of(values[5]),
    finish = number_of(values[6]), owed = number_of(values[7]), shift = number_of(values[8]), weight = values[9],
  }
  local keep = second - WINDOW_SECONDS
  if read.tail and read.tail < keep then
    local fields = {}
    for left = read.tail, math.min(keep - 1, read.tail + WINDOW_SECONDS) do
      fields[#fields + 1] = 'r' .. left
      fields[#fields + 1] = 't' .. left
    end
    local counts = redis.call('HMGET', use, unpack(fields))
    for index = 1, #counts, 2 do
      read.requests = read.requests - number_of(counts[index])
      read.tokens = read.tokens - number_of(counts[index + 1])
    end
    redis.call('HDEL', use, unpack(fields))
    redis.call('HSET', use, 'tail', keep, 'r', int(read.requests), 't', int(read.tokens))
    read.tail = keep
  end
  return read
end

-- Counts one request; lines of batches take nothing of the requests a minute. It lives as long as what it says matters:
-- the tags until no request of now waits any more. A turn that does not follow the tenant's last one begins a row of its
-- own, from which corrections count.
local function write_use(read, tokens, finish, owed, life_ms, is_batch, weight, row_at)
  local one = is_batch and 0 or 1
  local row = {}
  if row_at then row = { 'c:' .. read.lane, int(row_at), 's:' .. read.lane, 0 } end
  if weight and weight ~= read.weight then
    row[#row + 1] = 'w'
    row[#row + 1] = weight
  end
  redis.call('HSET', read.key, 'r', int(read.requests + one), 'r' .. read.second, int(read.requests_now + one),
    't', int(read.tokens + tokens), 't' .. read.second, int(read.tokens_now + tokens),
    'tail', read.tail or read.second, 'f:' .. read.lane, finish, 'o:' .. read.lane, int(owed),
    unpack(row))
  if redis.call('PTTL', read.key) < life_ms then redis.call('PEXPIRE', read.key, int(2 * life_ms)) end
end

-- Milliseconds until so much of one kind has left that `room` is free; `kind` is r or t.
local function wait_for_use(read, kind, used, most, now)
  local fields, tail = {}, read.tail or read.second
  for second = tail, read.second do fields[#fields + 1] = kind .. second end
  for index, count in ipairs(redis.call('HMGET', read.key, unpack(fields))) do
    used = used - number_of(count)
    if used <= most then return (tail + index + WINDOW_SECONDS) * 1000 - now end
  end
  return (WINDOW_SECONDS + 1) * 1000
end

-- Once it is known what a request has taken, the second of its acceptance has the true figure. Where that has left the
-- minute, what was taken beyond the estimate counts as of now: else long answers would pass by the ceiling.
local function correct_use(use, accepted_at, more, now)
  if more == 0 then return end
  local second = second_of(accepted_at)
  local values = redis.call('HMGET', use, 't', 't' .. second)
  if second >= second_of(now) - WINDOW_SECONDS then
    if not values[2] then return end
    redis.call('HSET', use, 't', int(number_of(values[1]) + more), 't' .. second, int(number_of(values[2]) + more))
  elseif values[1] and more > 0 then
    local read = read_use(use, '', now)
    redis.call('HSET', use, 't', int(read.tokens + more), 't' .. read.second, int(read.tokens_now + more))
  end
end

-- The difference is owed by, or credited to, the tenant's next turn in a line whose places stay as they are.
local function owe(use, lane, more)
  if more ~= 0 and redis.call('HEXISTS', use, 'f:' .. lane) == 1 then redis.call('HINCRBY', use, 'o:' .. lane, int(more)) end
end
