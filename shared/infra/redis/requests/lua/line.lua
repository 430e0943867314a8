-- The line in which requests wait for a worker: BullMQ's sorted set of prioritized jobs, which it empties from the
-- lowest score. Scores are start tags of start-time fair queueing (docs/decisions/0046): tenants take turns by weight,
-- and within a tenant requests go in the order of acceptance.
-- What every request counts beside its tokens, so that tiny ones are not free.
local TURN_TOKENS = 100
-- Where nobody waits a turn begins at the clock, which runs ahead of whatever tenants can take: in tokens a millisecond.
local CLOCK_TOKENS = 1000

-- Where the next request of a tenant begins whose last one in line ends at `finish`: behind it, but never before what
-- waits, so nobody saves up turns. A tenant that comes anew has a whole number and the others never do, so it goes before
-- the next request of those that have been waiting. `first` is what has the lowest tag, and its tag. Returns the tag, whether
-- nobody waits, and whether it follows that last one directly.
local function start_tag(first, finish, now)
  if not first[2] then return now * CLOCK_TOKENS, true, false end
  local now_served = math.floor(tonumber(first[2]))
  if finish <= now_served then return now_served, false, false end
  return finish % 1 == 0 and finish + 0.25 or finish, false, true
end

-- BullMQ's job, as its own scripts of the pinned version write it, without the events that nobody reads. Its priority is
-- 0: where BullMQ hands a job out again it goes to the front, because it has had its turn.
local function write_job(job, name, data, opts, timestamp)
  return redis.call('HSET', job, 'name', name, 'data', data, 'opts', opts, 'timestamp', timestamp, 'delay', '0',
    'priority', '0')
end

-- Seldom: takes a job that has ended, and is kept for Bull Board, out of the way of a new one of the same request.
local function forget_ended_job(job, line, id)
  if redis.call('HEXISTS', job, 'finishedOn') == 0 then return end
  local prefix = string.sub(line, 1, -#'prioritized' - 1)
  redis.call('ZREM', prefix .. 'completed', id)
  redis.call('ZREM', prefix .. 'failed', id)
  redis.call('DEL', job)
end

local JOB_FIELDS = 6

local function add_job(job, line, marker, meta, id, name, data, opts, timestamp, tag)
  -- Fewer new fields: there was a job.
  if write_job(job, name, data, opts, timestamp) < JOB_FIELDS then
    forget_ended_job(job, line, id)
    write_job(job, name, data, opts, timestamp)
  end
  redis.call('ZADD', line, tag, id)
  if redis.call('HEXISTS', meta, 'paused') == 0 then redis.call('ZADD', marker, '0', '0') end
end

local function job_of(line, id)
  return string.sub(line, 1, -#'prioritized' - 1) .. id
end

-- How many of a tenant's open requests workers have: they go in the order of acceptance, so these are the first ones.
local function taken_of(open, line, count)
  local low, high = 0, count
  while low < high do
    local middle = math.floor((low + high) / 2)
    local id = redis.call('ZRANGE', open, middle, middle)[1]
    if redis.call('ZSCORE', line, id) then high = middle else low = middle + 1 end
  end
  return low
end

-- Every so many ends of a tenant so many of its next requests are put where they belong: workers take about one for each
-- end, and up to eight at once.
local ENDS = 4
local MOVED = 8
-- Where a correction goes beyond those that follow they are moved, too, but no more than so many.
local MOVED_MAX = 96
-- Tokens by which a place may be off: that does not add up.
local NEAR = TURN_TOKENS / 4

-- Seldom: puts the next of a tenant's waiting requests where its turns have come to: each has its tag, and how far the turns had
-- been shifted then. None passes one that was accepted before it.
local function move_waiting(open, line, records, row)
  if redis.call('ZCARD', line) == 0 then return end
  local newest = redis.call('ZRANGE', open, -1, -1)[1]
  if not newest or not redis.call('ZSCORE', line, newest) then return end
  local first = taken_of(open, line, redis.call('ZCARD', open))
  local tags, after
  for _, most in ipairs({ MOVED, MOVED_MAX }) do
    local ids = redis.call('ZRANGE', open, first, first + most)
    if #ids == 0 then return end
    local places = redis.call('ZMSCORE', line, unpack(ids))
    tags, after = {}, tonumber(places[most + 1])
    for index = 1, math.min(most, #ids) do
      local place = tonumber(places[index])
      local values = place and redis.call('HMGET', records .. ids[index], 'turn', 'shift', 'acceptedAt')
      if values and values[3] and number_of(values[3]) >= row.since then
        local off = row.shift - number_of(values[2])
        if #tags == 0 and math.abs(off) * row.weight < NEAR then return end
        tags[#tags + 1] = { id = ids[index], place = place, tag = (values[1] or values[3] * CLOCK_TOKENS) + off }
      end
    end
    if not after or #tags == 0 or tags[#tags].tag < after then break end
  end
  local moves = {}
  for index = #tags, 1, -1 do
    local one = tags[index]
    if after and one.tag >= after then one.tag = after - 0.25 end
    after = one.tag
    if one.tag ~= one.place then
      moves[#moves + 1] = decimal(one.tag)
      moves[#moves + 1] = one.id
    end
  end
  if #moves > 0 then redis.call('ZADD', line, 'XX', unpack(moves)) end
end
