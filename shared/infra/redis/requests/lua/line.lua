-- The line in which requests wait for a worker: BullMQ's sorted set of prioritized jobs, which it empties from the
-- lowest score. Scores are start tags of start-time fair queueing (docs/decisions/0046): tenants take turns by weight,
-- and within a tenant requests go in the order of acceptance.
-- What every request counts beside its tokens, so that tiny ones are not free.
local TURN_TOKENS = 100
-- Where nobody waits a turn begins at the clock, which runs ahead of whatever tenants can take: in tokens a millisecond.
local CLOCK_TOKENS = 1000

local function tag_text(tag)
  return string.format('%.2f', tag)
end

-- Where the next request of a tenant begins whose last one in line ends at `finish`: behind it, but never before what
-- waits, so nobody saves up turns. A tenant that comes anew has a whole number and the others never do, so it goes before
-- the next request of those that have been waiting. `first` is what has the lowest tag, and its tag.
local function start_tag(first, finish, now)
  if not first[2] then return now * CLOCK_TOKENS, true end
  local now_served = math.floor(tonumber(first[2]))
  if finish <= now_served then return now_served, false end
  return finish % 1 == 0 and finish + 0.25 or finish, false
end

-- BullMQ's job, as its own scripts of the pinned version write it, without the events that nobody reads. Its priority is
-- 0: where BullMQ hands a job out again it goes to the front, because it has had its turn.
local function write_job(job, fields)
  return redis.call('HSET', job, 'name', fields.name, 'data', fields.data, 'opts', fields.opts,
    'timestamp', fields.timestamp, 'delay', '0', 'priority', '0')
end

-- Takes a job that has ended, and is kept for Bull Board, out of the way of a new one of the same request.
local function forget_ended_job(job, line, id)
  if redis.call('HEXISTS', job, 'finishedOn') == 0 then return end
  local prefix = string.sub(line, 1, -#'prioritized' - 1)
  redis.call('ZREM', prefix .. 'completed', id)
  redis.call('ZREM', prefix .. 'failed', id)
  redis.call('DEL', job)
end

local JOB_FIELDS = 6

local function add_job(job, line, marker, meta, id, fields)
  -- Fewer new fields: there was a job.
  if write_job(job, fields) < JOB_FIELDS then
    forget_ended_job(job, line, id)
    write_job(job, fields)
  end
  redis.call('ZADD', line, fields.tag, id)
  if redis.call('HEXISTS', meta, 'paused') == 0 then redis.call('ZADD', marker, '0', '0') end
end

local function store_body(body, text, accepted_at, life_ms)
  redis.call('SET', body, string.sub(text, 1, -2) .. ',"acceptedAt":' .. accepted_at .. '}', 'PX', life_ms)
end

local function job_of(line, id)
  return string.sub(line, 1, -#'prioritized' - 1) .. id
end

-- How many of a tenant's open requests workers have: tags rise within a tenant, so these are the first ones.
local function taken_of(open, line, count)
  local low, high = 0, count
  while low < high do
    local middle = math.floor((low + high) / 2)
    local id = redis.call('ZRANGE', open, middle, middle)[1]
    if redis.call('ZSCORE', line, id) then high = middle else low = middle + 1 end
  end
  return low
end
