-- Counts one request that is not a chat request, or a refused one. It takes one of the key's rpm, or of a window of its
-- own (looking up and resuming), and nothing else; the figures are the key's rpm and tokens in any case.
-- KEYS  1 rpm log, 2 token log, 3 token weights, 4 blocked key, 5 blocked tenant, 6 log that it takes from
-- ARGV  1 request id, 2 limit of that log, 3 whether it takes one (1) or only looks (0)
local now = now_ms()
local limit = tonumber(ARGV[2])
local requests = count_of(KEYS[1], now)
local used = tokens_used(KEYS[2], KEYS[3], now)

local function reply(verdict, retry_ms)
  return { verdict, requests, reset_of(KEYS[1], now), used, reset_of(KEYS[2], now), math.ceil(retry_ms or 0), 0, 0, now }
end

if redis.call('EXISTS', KEYS[4]) == 1 then return reply('revoked') end
if ARGV[3] == '1' then
  local taken = KEYS[6] == KEYS[1] and requests or count_of(KEYS[6], now)
  if taken >= limit then return reply('rpm', wait_for_place(KEYS[6], taken, limit, now)) end
  log_request(KEYS[6], ARGV[1], now)
  if KEYS[6] == KEYS[1] then requests = requests + 1 end
end
return reply(redis.call('EXISTS', KEYS[5]) == 1 and 'suspended' or 'admitted')
