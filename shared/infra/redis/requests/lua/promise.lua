-- If the line is full, each caller learns when a place will be free, and each place is promised to one caller only. From
-- that time on the place is kept for a moment, so the caller finds room even if others come meanwhile.
local PROMISED_MIN_MS = 1000
local PROMISED_MAX_MS = 30000
-- Retry-After has whole seconds, and callers come back a little later.
local KEPT_MS = 2500
-- A caller who has not come back after this time has gone.
local LATE_MS = 30000
-- The pace while none is known.
local PACE_MS = 250
-- Promises are made this much farther apart than requests end. The difference leaves room for newcomers, slower workers and
-- callers who come late; without it a full line would never get shorter.
local SPARE = 1.2
-- If the last promise is this many times further away than all promises need at the present pace, it dates from a slower
-- time.
local TOO_FAR = 2
-- The part of all promised places that one tenant may have.
local TENANTS_PART = 0.5

-- How many places are kept for callers who were told to come back by now. `slots` has all promises.
local function kept_places(slots, now)
  return redis.call('ZCOUNT', slots, int(now - KEPT_MS), int(now))
end

-- A promise of the tenant whose time has come. It does not matter which of the tenant's callers takes it.
local function due_promise(promises, now)
  redis.call('ZREMRANGEBYSCORE', promises, '-inf', int(now - LATE_MS))
  return redis.call('ZRANGEBYSCORE', promises, '-inf', int(now), 'LIMIT', 0, 1)[1]
end

-- Whether a request finds a place, and the promise that it takes; without `promises` it takes none. A caller takes its
-- promise even while there is room, or else another request of the tenant would find it later. With a promise, a
-- request may exceed the limit by a tenth of it.
local function find_place(promises, slots, waiting, limit, now)
  local kept = waiting >= limit / 2 and kept_places(slots, now) or 0
  if kept == 0 and waiting < limit then return true end
  local due = promises and due_promise(promises, now)
  if due then return waiting < limit + math.max(1, math.floor(limit / 10)), due end
  return waiting + kept < limit
end

-- Removes a promise that was taken, or replaced by a later one.
local function use_promise(promises, slots, due)
  if not due then return end
  redis.call('ZREM', promises, due)
  redis.call('ZREM', slots, due)
end

-- @seldom
-- Promises that lie too far ahead were made before the server's clock was set back. Their callers are treated like
-- others.
local function forget_ahead(promises, slots, now)
  redis.call('ZREMRANGEBYSCORE', promises, int(now + PROMISED_MAX_MS + LATE_MS), '+inf')
  redis.call('ZREMRANGEBYSCORE', slots, int(now + PROMISED_MAX_MS + LATE_MS), '+inf')
end

-- Promises a place. Returns the milliseconds until the caller should come back. `statistics` has the pace of `whose` requests
-- (pace.lua).
local function promise_place(promises, slots, statistics, whose, id, now)
  local values = redis.call('HMGET', statistics, 'pace:' .. whose, 'gap:' .. whose, 'back:' .. whose)
  local step = SPARE * (tonumber(values[1]) or tonumber(values[2]) or PACE_MS)
  local last = number_of(values[3])
  if last > now + PROMISED_MAX_MS + LATE_MS then
    forget_ahead(promises, slots, now)
    last = 0
  end
  -- One tenant fills at most half of the line, so it is promised at most half of its places. Promises of its own share take
  -- nothing from others.
  if whose == 'lane' and redis.call('ZCOUNT', promises, int(now), '+inf') >= math.max(1, PROMISED_MAX_MS / step * TENANTS_PART) then
    return PROMISED_MAX_MS
  end
  local back = math.max(last, now) + step
  local needed = step * (redis.call('ZCOUNT', slots, int(now - KEPT_MS), '+inf') + 1)
  -- By then there are no more promises than places, whenever the others are due.
  if values[1] and back - now > TOO_FAR * needed then back = now + needed end
  local wait = math.max(PROMISED_MIN_MS, back - now)
  if wait > PROMISED_MAX_MS then return PROMISED_MAX_MS end
  redis.call('HSET', statistics, 'back:' .. whose, string.format('%.3f', back))
  redis.call('ZADD', promises, int(now + math.ceil(wait / 1000) * 1000), id)
  redis.call('ZADD', slots, int(back), id)
  redis.call('ZREMRANGEBYSCORE', slots, '-inf', int(now - LATE_MS))
  redis.call('PEXPIRE', promises, PROMISED_MAX_MS + LATE_MS)
  redis.call('PEXPIRE', slots, PROMISED_MAX_MS + LATE_MS)
  return wait
end
