-- A full line says to each caller when a place will be free that nobody else was promised: nearly one for each time that
-- a request leaves. The place is kept for a moment from then on, so who comes back finds room although others come
-- meanwhile.
local PROMISED_MIN_MS = 1000
local PROMISED_MAX_MS = 30000
-- Callers count whole seconds, and come back some time later.
local KEPT_MS = 2500
-- A caller who comes later than that has gone.
local LATE_MS = 30000
-- Before anything is known.
local PACE_MS = 250
-- Promises lie so much farther apart than requests leave. What is left over goes to newcomers while there is room, and
-- takes up what the workers fall behind and who comes late: without it the line stays as full as it has once been.
local SPARE = 1.2
-- Where the last promise is so many times as far away as all of them need at today's pace, it dates from a slower time.
local TOO_FAR = 2
-- Of the places that can be promised.
local TENANTS_PART = 0.5

-- How many places of the line are kept for those who were told to come back by now; `slots` has all promises.
local function kept_places(slots, now)
  return redis.call('ZCOUNT', slots, int(now - KEPT_MS), int(now))
end

-- One of the tenant's promises that has come true. Its caller cannot be back sooner, others of the tenant could.
local function due_promise(promises, now)
  redis.call('ZREMRANGEBYSCORE', promises, '-inf', int(now - LATE_MS))
  return redis.call('ZRANGEBYSCORE', promises, '-inf', int(now), 'LIMIT', 0, 1)[1]
end

-- Whether there is a place among so many, and the promise that it goes to; without `promises` it goes to none. Where
-- there is room, too, who was promised a place takes that one: else somebody else of the tenant finds it. Who comes late
-- finds room for a tenth beyond the limit.
local function find_place(promises, slots, waiting, limit, now)
  local kept = waiting >= limit / 2 and kept_places(slots, now) or 0
  if kept == 0 and waiting < limit then return true end
  local due = promises and due_promise(promises, now)
  if due then return waiting < limit + math.max(1, math.floor(limit / 10)), due end
  return waiting + kept < limit
end

-- It is used up by who gets in, and by who is told another time instead: nobody else of the tenant finds it.
local function use_promise(promises, slots, due)
  if not due then return end
  redis.call('ZREM', promises, due)
  redis.call('ZREM', slots, due)
end

-- Milliseconds until the caller should come back; `statistics` has the pace of `whose` requests, see pace.lua.
local function promise_place(promises, slots, statistics, whose, id, now)
  local values = redis.call('HMGET', statistics, 'pace:' .. whose, 'gap:' .. whose, 'back:' .. whose)
  local step = SPARE * (tonumber(values[1]) or tonumber(values[2]) or PACE_MS)
  -- The line's places are for all tenants: one of them is promised at most half, as it fills at most half of the line. A
  -- promise of its own share takes nothing of others.
  if whose == 'lane' and redis.call('ZCOUNT', promises, int(now), '+inf') >= math.max(1, PROMISED_MAX_MS / step * TENANTS_PART) then
    return PROMISED_MAX_MS
  end
  local back = math.max(number_of(values[3]), now) + step
  local needed = step * (redis.call('ZCOUNT', slots, int(now - KEPT_MS), '+inf') + 1)
  -- So many later there are no more promises than places, wherever the others lie.
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
