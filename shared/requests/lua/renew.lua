-- Renews a running request's lease, raises its weight in the key's token window, and grants it more of credits, budget
-- or test allowance.
-- KEYS 1 record, 2 inflight, 3 account, 4 token use of the key
-- ARGV 1 request id, 2 fence, 3 lease in ms, 4 disconnect grace in ms, 5 token weight, then pairs of micro-credits and
-- tokens: 6 and 7 what it must hold in all, 8 and 9 what it would like to hold, 10 and 11 by how much it may exceed a
-- bound if no other request holds any, 12 name of the claim ('': not compared)
-- Returns 'superseded'; 'missing' (no record); 'accepted' (Redis lost the claim, perhaps has an earlier one); or
-- 'cancelled', 'abandoned' (nobody reads any more) or 'ok', with micro-credits and tokens held (-1: not bounded), and
-- the ms for which nobody has read (-1: a reader did not renew its lease).
local state, fence, is_cancelled, owner, accepted_at, estimate, weight, hold_text, hold_tokens, month, billed, allowance,
  limit = unpack(redis.call('HMGET', KEYS[1], 'state', 'fence', 'cancel', 'owner', 'acceptedAt', 'estimate', 'weight',
    'hold', 'holdTokens', 'month', 'billed', 'allowance', 'limit'))
if state == 'accepted' then return { 'accepted', 0, 0 } end
if state ~= 'running' then return { state and 'superseded' or 'missing', 0, 0 } end
if fence ~= ARGV[2] then return { fence + 0 < ARGV[2] + 0 and 'accepted' or 'superseded', 0, 0 } end
if ARGV[12] ~= '' and owner ~= ARGV[12] then return { 'superseded', 0, 0 } end
local leased = int(now_ms() + tonumber(ARGV[3]))
redis.call('ZADD', KEYS[2], leased, ARGV[1])
redis.call('HSET', KEYS[1], 'leased', leased)
-- Says 'abandoned' if no reader came back within the grace (docs/spec.md#disconnect).
local function look_for_readers(now)
  if redis.call('HGET', KEYS[1], 'onDisconnect') ~= 'cancel' then return nil end
  local fields, latest, has_lapsed = redis.call('HGETALL', KEYS[1]), 0, false
  for index = 1, #fields, 2 do
    local is_lease = string.sub(fields[index], 1, 7) == 'reader:'
    if is_lease or fields[index] == 'left' then
      local till = tonumber(fields[index + 1])
      -- No reader's lease is that long: it was made before the clock was set back. A live reader renews it.
      if till > now + MINUTE_MS then
        till = now
        redis.call('HSET', KEYS[1], fields[index], int(now))
      end
      latest, has_lapsed = math.max(latest, till), has_lapsed or is_lease
    end
  end
  if now <= latest + tonumber(ARGV[4]) then return nil end
  return 'abandoned', has_lapsed and -1 or int(now - latest)
end

local verdict, left_ms = look_for_readers(now_ms())
if is_cancelled then verdict = 'cancelled' end
local function pair_at(at)
  return { micro = tonumber(ARGV[at]), tokens = tonumber(ARGV[at + 1]) }
end
local required, preferred, overdraft = pair_at(6), pair_at(8), pair_at(10)
local micro, tokens, is_billed = number_of(hold_text), number_of(hold_tokens), billed == '1'
limit = tonumber(limit)
local held_micro, held_tokens = micro, tokens
if is_billed then
  local holds = load_holds(KEYS[3], month)
  held_micro, held_tokens = raise_hold(holds, micro, tokens, limit, required, preferred, overdraft)
  save_holds(holds)
else
  held_tokens = more_allowed(allowance, tokens, limit, required, preferred, overdraft)
end
if held_micro ~= micro or held_tokens ~= tokens then
  redis.call('HSET', KEYS[1], 'hold', int(held_micro), 'holdTokens', int(held_tokens))
end
-- The weight is never lowered before the end. A replayed request keeps that of its admission (requeue.lua).
local more = estimate and tonumber(ARGV[5]) - (tonumber(weight) or number_of(estimate)) or 0
if more > 0 then
  correct_tokens(KEYS[4], number_of(accepted_at), more, now_ms())
  redis.call('HSET', KEYS[1], 'weight', ARGV[5])
end
return { verdict or 'ok', is_billed and held_micro or -1, (limit or not is_billed) and held_tokens or -1, left_ms or -1 }
