-- Renews a running request's lease and raises its hold and its token weight to what it needs next.
-- KEYS 1 record, 2 inflight, 3 account, 4 token log, 5 token weights
-- ARGV 1 request id, 2 fence, 3 lease in ms, 4 needed micro-credits, 5 needed tokens,
--      6 disconnect grace in ms, 7 micro-credits used so far
-- Returns 'superseded', 'cancelled', 'exhausted' (it has used all that it holds, and no more is left) or 'ok'.
local values = redis.call('HMGET', KEYS[1], 'state', 'fence', 'cancel', 'hold', 'holdTokens', 'month', 'billed', 'allowance')
if values[1] ~= 'running' or values[2] ~= ARGV[2] then return 'superseded' end
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
  return now > latest + tonumber(ARGV[6])
end

local verdict = (values[3] or is_abandoned(now_ms())) and 'cancelled' or 'ok'
local tokens = tonumber(ARGV[5])
local more_tokens = math.max(0, tokens - number_of(values[5]))
if values[7] == '1' then
  local held = number_of(values[4])
  local wanted = math.max(0, tonumber(ARGV[4]) - held)
  local granted = math.min(wanted, math.max(0, spendable(KEYS[3])))
  if granted < wanted and tonumber(ARGV[7]) >= held + granted and verdict == 'ok' then verdict = 'exhausted' end
  if granted > 0 or more_tokens > 0 then
    hold(KEYS[3], values[6], granted, more_tokens)
    redis.call('HINCRBY', KEYS[1], 'hold', int(granted))
  end
elseif more_tokens > 0 then
  use_allowance(values[8], more_tokens)
end
if more_tokens > 0 then
  redis.call('HINCRBY', KEYS[1], 'holdTokens', int(more_tokens))
  correct_tokens(KEYS[4], KEYS[5], ARGV[1], tokens)
end
return verdict
