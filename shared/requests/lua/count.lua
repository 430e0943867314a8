-- Counts a request that is not an admitted chat request, or checks whether it would be refused. It counts in the key's
-- log or that of look-ups, in an endpoint's log, and in that of all keys of the tenant: in all or in none. Always
-- returns the key's requests and tokens.
-- KEYS 1 rpm log, 2 what the key's requests take, 3 blocked key, 4 blocked tenant, 5 log that it takes from, 6 second
-- log, 7 log of the tenant
-- ARGV 1 request id, 2 limit of log 5, 3 takes one (1) or only looks (0), 4 limit of log 6, 5 limit of log 7 (empty:
-- none)
local now = now_ms()
local limit = tonumber(ARGV[2])
local requests = count_of(KEYS[1], now)
local key = read_window(KEYS[2], redis.call('HGET', KEYS[2], 'minute'), now)
local blocked = redis.call('MGET', KEYS[3], KEYS[4])

local function reply(verdict, retry_ms)
  return { verdict, requests, reset_of(KEYS[1], now), key.tokens, reset_of_window(key, now), math.ceil(retry_ms or 0), 0, 0, now }
end

if blocked[1] then return reply(blocked[1] == '1' and 'revoked' or 'changed') end
-- A moving tenant's flag is a mark (set-move-marker.lua).
if blocked[2] and blocked[2] ~= '1' then
  local moved = reply('moved')
  moved[10] = blocked[2]
  return moved
end
local taken = KEYS[5] == KEYS[1] and requests or count_of(KEYS[5], now)
local verdict, retry = nil, 0
if taken >= limit then verdict, retry = 'rpm', wait_for_place(KEYS[5], limit, now) end
local further = {}
for index, name in ipairs({ 'throttle', 'tenant_calls' }) do
  local log, further_limit = KEYS[5 + index], tonumber(ARGV[3 + index])
  if further_limit then
    further[#further + 1] = log
    if count_of(log, now) >= further_limit then
      local wait = wait_for_place(log, further_limit, now)
      -- All limits must pass, so the longest wait counts.
      if wait > retry then verdict, retry = name, wait end
    end
  end
end
if verdict then return reply(verdict, retry) end
if ARGV[3] == '1' then
  log_request(KEYS[5], ARGV[1], now)
  for _, log in ipairs(further) do log_request(log, ARGV[1], now) end
  if KEYS[5] == KEYS[1] then requests = requests + 1 end
end
return reply(blocked[2] and 'suspended' or 'admitted')
