-- Renews a running request's lease, raises its token weight, and grants it more of credits, budget or test allowance.
-- KEYS 1 record, 2 inflight, 3 account, 4 what the key's requests take
-- ARGV 1 request id, 2 fence, 3 lease in ms, 4 disconnect grace in ms, 5 token weight,
--      6 micro-credits and 7 tokens that it must hold in all, 8 and 9 what it asks ahead, 10 and 11 how far it may go
--      beyond a bound of which nobody else holds anything, 12 name of the claim ('' not compared)
-- Returns 'superseded', 'accepted' (Redis came back without the claim), or 'cancelled', 'abandoned' (nobody reads any more) or 'ok' with the micro-credits and tokens held then, -1 where not bounded.
local values = redis.call('HMGET', KEYS[1], 'state', 'fence', 'cancel', 'owner', 'acceptedAt', 'estimate', 'weight',
  'hold', 'holdTokens', 'month', 'billed', 'allowance', 'limit')
if values[1] == 'accepted' then return { 'accepted', 0, 0 } end
if values[1] ~= 'running' or values[2] ~= ARGV[2] then return { 'superseded', 0, 0 } end
if ARGV[12] ~= '' and values[4] ~= ARGV[12] then return { 'superseded', 0, 0 } end
local leased = int(now_ms() + tonumber(ARGV[3]))
redis.call('ZADD', KEYS[2], leased, ARGV[1])
redis.call('HSET', KEYS[1], 'leased', leased)
-- Nobody reads any more, and nobody came back within the grace (docs/spec/contract.md section 3, Disconnect).
local function is_abandoned(now)
  if redis.call('HGET', KEYS[1], 'alone') ~= 'cancel' then return false end
  local fields, latest = redis.call('HGETALL', KEYS[1]), 0
  for index = 1, #fields, 2 do
    if string.sub(fields[index], 1, 7) == 'reader:' then latest = math.max(latest, tonumber(fields[index + 1])) end
  end
  return now > latest + tonumber(ARGV[4])
end

local verdict = values[3] and 'cancelled' or is_abandoned(now_ms()) and 'abandoned' or 'ok'
-- What it must hold in all, would like to hold, and by how much it may overrun.
local function bound(at)
  return { micro = tonumber(ARGV[at]), tokens = tonumber(ARGV[at + 1]) }
end
local must, ahead, over = bound(6), bound(8), bound(10)
local micro, tokens, limit = number_of(values[8]), number_of(values[9]), tonumber(values[13])
local held_micro, held_tokens = micro, tokens
if values[11] == '1' then
  local owed = read_owed(KEYS[3], values[10])
  held_micro, held_tokens = more_held(owed, micro, tokens, limit, must, ahead, over)
  write_owed(owed)
else
  held_tokens = more_allowed(values[12], tokens, limit, must, ahead, over)
end
if held_micro ~= micro or held_tokens ~= tokens then
  redis.call('HSET', KEYS[1], 'hold', int(held_micro), 'holdTokens', int(held_tokens))
end
-- What it weighs is never lowered before the end. A replayed request keeps the weight of its admission (requeue.lua).
local more = values[6] and tonumber(ARGV[5]) - (tonumber(values[7]) or number_of(values[6])) or 0
if more > 0 then
  correct_tokens(KEYS[4], number_of(values[5]), more, now_ms())
  redis.call('HSET', KEYS[1], 'weight', ARGV[5])
end
return { verdict, values[11] == '1' and held_micro or -1, (limit or values[11] ~= '1') and held_tokens or -1 }
