-- Counts a request that is not an admitted chat request, or checks whether it would be refused. It counts in the key's
-- log or in a separate one (look-ups), and in a second log if the endpoint has a limit of its own: in both or in
-- neither. The figures returned are always the key's requests and tokens.
-- KEYS  1 rpm log, 2 what the key's requests take, 3 blocked key, 4 blocked tenant, 5 log that it takes from, 6 second log
-- ARGV  1 request id, 2 limit of log 5, 3 whether it takes one (1) or only looks (0), 4 limit of log 6 (empty: none)
local now = now_ms()
local limit, second_limit = tonumber(ARGV[2]), tonumber(ARGV[4])
local requests = count_of(KEYS[1], now)
local newest, line = unpack(redis.call('HMGET', KEYS[2], 'u', 'line'))
local key = to_use(KEYS[2], newest, now)
-- Tokens that are kept for a line of a batch are not available to others.
local kept = line and kept_from(line, ARGV[1], 0, 0, now) or 0
local blocked = redis.call('MGET', KEYS[3], KEYS[4])

local function reply(verdict, retry_ms)
  return { verdict, requests, reset_of(KEYS[1], now), key.tokens + kept, reset_of_use(key, now, kept), math.ceil(retry_ms or 0), 0,
    0, now }
end

if blocked[1] then return reply('revoked') end
-- If a tenant moves to another shard, its flag is a mark (mark-move.lua).
if blocked[2] and blocked[2] ~= '1' then
  local elsewhere = reply('elsewhere')
  elsewhere[10] = blocked[2]
  return elsewhere
end
local taken = KEYS[5] == KEYS[1] and requests or count_of(KEYS[5], now)
local verdict, retry = nil, 0
if taken >= limit then verdict, retry = 'rpm', wait_for_place(KEYS[5], limit, now) end
if second_limit then
  if count_of(KEYS[6], now) >= second_limit then
    local wait = wait_for_place(KEYS[6], second_limit, now)
    -- Both limits must pass, so the longer wait counts.
    if wait > retry then verdict, retry = 'throttle', wait end
  end
end
if verdict then return reply(verdict, retry) end
if ARGV[3] == '1' then
  log_request(KEYS[5], ARGV[1], now)
  if second_limit then log_request(KEYS[6], ARGV[1], now) end
  if KEYS[5] == KEYS[1] then requests = requests + 1 end
end
return reply(blocked[2] and 'suspended' or 'admitted')
