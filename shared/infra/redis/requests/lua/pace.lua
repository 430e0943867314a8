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

-- @seldom
-- Notes a group of `count` ends in the hash `key`. `busy`: requests are waiting.
local function note_group(key, whose, count, now, busy)
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
