-- How fast requests end: milliseconds between two ends, as a moving mean over small groups. `gap` covers all groups;
-- `pace` covers only groups at whose beginning and end requests waited, so it shows what workers can do, not what
-- callers send.
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

-- Callers who come for the first time find most of the places that come free, so refused ones are told times this many
-- times as far apart as requests end: under a steady overload at least four of five who come when told find a place then.
local SPREAD = 10
local RETRY_MIN_MS = 1000
local RETRY_MAX_MS = 30000
-- The pace while none is known.
local PACE_MS = 250

-- Returns in how many milliseconds a caller whom a full queue refused should come back. Callers are told one time after
-- the other, as far apart as the pace of `whose` requests in the hash `key` says; no place is kept for them.
local function retry_estimate_ms(key, whose, now)
  local pace, gap, last = unpack(redis.call('HMGET', key, 'pace:' .. whose, 'gap:' .. whose, 'retry:' .. whose))
  last = number_of(last)
  -- A time that far ahead was told before the server's clock was set back.
  if last > now + RETRY_MAX_MS then last = 0 end
  local at = math.min(now + RETRY_MAX_MS, math.max(last, now) + SPREAD * (pace or gap or PACE_MS))
  redis.call('HSET', key, 'retry:' .. whose, int(at))
  return math.max(RETRY_MIN_MS, at - now)
end
