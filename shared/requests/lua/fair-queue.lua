-- The queue in which requests wait for a worker: BullMQ's sorted set of prioritized jobs, taken from the lowest score.
-- Scores are start tags of start-time fair queueing (docs/decisions/0004-fair-queueing.md): tenants are served by
-- weight, and a tenant's requests go in the order of acceptance.
-- Added to every request's tokens, so that tiny requests are not free.
local BASE_COST = 100
-- If nothing waits, the start tag is the time, in tokens per millisecond: faster than any tenant can use them.
local VIRTUAL_TIME_PER_MS = 1000

-- The start tag of a tenant's next request follows its last one, which ends at `finish`, but never precedes what is
-- being served, so nobody saves up service. Only newly arriving tenants have whole numbers, and so precede the next
-- requests of those that waited. `first`: the job with the lowest tag, and that tag.
-- Returns the tag, whether nothing waits, and whether the request follows the tenant's last one directly.
local function start_tag(first, finish, now)
  if not first[2] then return now * VIRTUAL_TIME_PER_MS, true, false end
  local now_served = math.floor(tonumber(first[2]))
  if finish <= now_served then return now_served, false, false end
  return finish % 1 == 0 and finish + 0.25 or finish, false, true
end

-- The finish tag of a tenant without waiting requests is near the head, or further after a long request or overrun.
local NEAR_HEAD = 5000 * VIRTUAL_TIME_PER_MS

-- Writes a job as the pinned BullMQ does, but without events, which nobody reads. Priority 0: a job that BullMQ hands
-- out again goes to the front, because it was handed out before.
local function write_job(job, name, data, opts, timestamp)
  return redis.call('HSET', job, '@name@', name, '@data@', data, '@opts@', opts, '@timestamp@', timestamp,
    '@delay@', '0', '@priority@', '0')
end

-- An ended job was kept for Bull Board; its request can then have a new one.
local function forget_ended_job(job, prioritized, id)
  if redis.call('HEXISTS', job, '@finishedOn@') == 0 then return end
  local prefix = string.sub(prioritized, 1, -#'@prioritized@' - 1)
  redis.call('ZREM', prefix .. '@completed@', id)
  redis.call('ZREM', prefix .. '@failed@', id)
  redis.call('DEL', job)
end

-- While a tier's providers are full, workers read the queue by tier (take.lua).
local TIERS = { @TIERS@ }
local INDEX_MS = 10000

local function tier_queue(prioritized, tier)
  return prioritized .. ':' .. tier
end

local JOB_FIELDS = 6

local function add_job(job, prioritized, marker, meta, id, name, data, opts, timestamp, tag)
  -- Fewer new fields mean that the job existed.
  if write_job(job, name, data, opts, timestamp) < JOB_FIELDS then
    forget_ended_job(job, prioritized, id)
    write_job(job, name, data, opts, timestamp)
  end
  redis.call('ZADD', prioritized, tag, id)
  local settings = redis.call('HMGET', meta, '@paused@', 'tiers')
  if not settings[1] then redis.call('ZADD', marker, '0', '@jobWaits@') end
  if settings[2] and settings[2] + 0 > now_ms() then
    local tier = redis.call('HGET', string.match(prioritized, '^{[^}]*}:') .. 'r:' .. id, 'tier')
    for _, each in ipairs(TIERS) do
      if not tier or tier == each then
        redis.call('ZADD', tier_queue(prioritized, each), tag, id)
        redis.call('PEXPIRE', tier_queue(prioritized, each), INDEX_MS)
      end
    end
  end
end

local NEWEST_LOOKED_AT = 8

-- If any requests of a tenant wait, its newest ones do, except those that are not queued yet.
local function has_waiting(open, prioritized)
  for _, id in ipairs(redis.call('ZREVRANGE', open, 0, NEWEST_LOOKED_AT - 1)) do
    if redis.call('ZSCORE', prioritized, id) then return true end
  end
  return false
end

-- Finds a finish tag far behind all that waits (by `ahead`) and a minute ahead of the clock, though nothing of the
-- tenant waits: it was written before the clock was set back, and the queue has been empty since. The tenant would wait
-- until the clock has caught up. Ask only if the end is not near. Lines of batches are not open requests; few are
-- queued.
local function is_ahead_of_clock(ends_at, ahead, now, queue, open, prioritized, waiting)
  if ends_at <= (now + MINUTE_MS) * VIRTUAL_TIME_PER_MS then return false end
  if queue == 'batch' then return ahead > NEAR_HEAD * (waiting + 1) end
  return not has_waiting(open, prioritized)
end

local function job_of(prioritized, id)
  return string.sub(prioritized, 1, -#'@prioritized@' - 1) .. id
end

-- Workers take a tenant's open requests in the order of acceptance, so a binary search finds the first that waits.
local function taken_of(open, prioritized, count)
  local low, high = 0, count
  while low < high do
    local middle = math.floor((low + high) / 2)
    local id = redis.call('ZRANGE', open, middle, middle)[1]
    if redis.call('ZSCORE', prioritized, id) then high = middle else low = middle + 1 end
  end
  return low
end

-- After every fourth end of a tenant's requests, its next eight waiting ones get corrected tags: workers take about one
-- request per end, and up to eight at once.
local ENDS = 4
local MOVED = 8
-- If a correction would move them past the request behind, more requests are moved, up to this many.
local MOVED_MAX = 96
-- A tag may be off by this many tokens; such errors do not add up.
local NEAR = BASE_COST / 4

-- Corrects the tags of a tenant's next waiting requests, which know their tag and the busy period's shift at that time.
-- None overtakes a request accepted before it.
local function move_waiting(open, prioritized, records, period)
  if redis.call('ZCARD', prioritized) == 0 then return end
  local newest = redis.call('ZRANGE', open, -1, -1)[1]
  if not newest or not redis.call('ZSCORE', prioritized, newest) then return end
  local first = taken_of(open, prioritized, redis.call('ZCARD', open))
  local tags, after
  for _, most in ipairs({ MOVED, MOVED_MAX }) do
    local ids = redis.call('ZRANGE', open, first, first + most)
    if #ids == 0 then return end
    local places = redis.call('ZMSCORE', prioritized, unpack(ids))
    tags, after = {}, tonumber(places[most + 1])
    for index = 1, math.min(most, #ids) do
      local place = tonumber(places[index])
      local values = place and redis.call('HMGET', records .. ids[index], 'startTag', 'shift', 'acceptedAt')
      if values and values[3] and number_of(values[3]) >= period.since then
        local off = period.shift - number_of(values[2])
        if #tags == 0 and math.abs(off) * period.weight < NEAR then return end
        tags[#tags + 1] = { id = ids[index], place = place, tag = (values[1] or values[3] * VIRTUAL_TIME_PER_MS) + off }
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
  if #moves == 0 then return end
  redis.call('ZADD', prioritized, 'XX', unpack(moves))
  for _, tier in ipairs(TIERS) do redis.call('ZADD', tier_queue(prioritized, tier), 'XX', unpack(moves)) end
end

-- Milliseconds between two ends, as a moving mean over small groups. `gap` covers all groups; `pace` only those that
-- began and ended with requests waiting: it shows what workers can do, not what callers send.
local GROUP = 8
local GROUP_WEIGHT = 0.2
local PAUSE_MAX_MS = 60000

local function mean_with(old, new)
  if not old then return string.format('%.3f', new) end
  return string.format('%.3f', old * (1 - GROUP_WEIGHT) + new * GROUP_WEIGHT)
end

-- Notes a group of `count` ends in the hash `key`. `busy`: requests are waiting.
local function record_throughput(key, whose, count, now, busy)
  local values = redis.call('HMGET', key, 'since:' .. whose, 'busy:' .. whose, 'gap:' .. whose, 'pace:' .. whose)
  local since = tonumber(values[1])
  local changes = { 'ends:' .. whose, 0, 'since:' .. whose, int(now), 'busy:' .. whose, busy and 1 or 0 }
  if since and since <= now then
    local gap = math.min(PAUSE_MAX_MS, now - since) / count
    changes[#changes + 1] = 'gap:' .. whose
    changes[#changes + 1] = mean_with(tonumber(values[3]), gap)
    if busy and values[2] == '1' then
      changes[#changes + 1] = 'pace:' .. whose
      changes[#changes + 1] = mean_with(tonumber(values[4]), gap)
      changes[#changes + 1] = 'paced:' .. whose
      changes[#changes + 1] = int(now)
    end
  end
  redis.call('HSET', key, unpack(changes))
end

-- New callers take most free places, so refused ones get times this many times as far apart as requests end: under a
-- steady overload, at least four of five who come when told find a place.
local SPREAD = 10
local RETRY_MIN_MS = 1000
local RETRY_MAX_MS = 30000
local PACE_MS = 250

-- Milliseconds after which a caller refused by a full queue should come back. Told times are as far apart as the pace
-- of `whose` requests in the hash `key`; no place is kept.
local function retry_estimate_ms(key, whose, now)
  local pace, gap, last = unpack(redis.call('HMGET', key, 'pace:' .. whose, 'gap:' .. whose, 'retry:' .. whose))
  last = number_of(last)
  -- A time that far ahead was told before the server's clock was set back.
  if last > now + RETRY_MAX_MS then last = 0 end
  local at = math.min(now + RETRY_MAX_MS, math.max(last, now) + SPREAD * (pace or gap or PACE_MS))
  redis.call('HSET', key, 'retry:' .. whose, int(at))
  return math.max(RETRY_MIN_MS, at - now)
end
