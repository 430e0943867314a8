-- Renews a running request's lease, raises its token weight, and grants it more of credits, budget or test allowance.
-- KEYS 1 record, 2 inflight, 3 account, 4 what the key's requests take
-- ARGV 1 request id, 2 fence, 3 lease in ms, 4 disconnect grace in ms, 5 token weight,
--      6 micro-credits and 7 tokens that it must hold in all, 8 and 9 what it asks ahead, 10 and 11 how far it may go
--      beyond a bound of which nobody else holds anything, 12 name of the claim ('' not compared)
-- Returns 'superseded', 'accepted' (Redis came back without the claim), or 'cancelled', 'abandoned' (nobody reads any more) or 'ok' with the micro-credits and tokens held then, -1 where not bounded.
local values = redis.call('HMGET', KEYS[1], 'state', 'fence', 'cancel', 'owner', 'acceptedAt', 'estimate', 'weight')
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
local micro, tokens = raise_holds(KEYS[1], KEYS[3], {
  must_micro = tonumber(ARGV[6]), must_tokens = tonumber(ARGV[7]), ahead_micro = tonumber(ARGV[8]),
  ahead_tokens = tonumber(ARGV[9]), over_micro = tonumber(ARGV[10]), over_tokens = tonumber(ARGV[11]),
})
-- What it weighs is never lowered before the end. A replayed request keeps the weight of its admission (requeue.lua).
local more = values[6] and tonumber(ARGV[5]) - (tonumber(values[7]) or number_of(values[6])) or 0
if more > 0 then
  correct_tokens(KEYS[4], number_of(values[5]), more)
  redis.call('HSET', KEYS[1], 'weight', ARGV[5])
end
return { verdict, int(micro), int(tokens) }
