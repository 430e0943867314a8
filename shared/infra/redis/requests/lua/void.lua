-- Takes back an admission whose job never started: frees its holds and leaves a tombstone, so that neither a late
-- admission nor a late job of the same id can run. Safe to repeat.
-- KEYS those of drop.lua, 10 channel of cancelled requests
-- ARGV 1 request id, 2 lifetime of the tombstone in ms, 3 last entry for whoever still reads ('' none: nobody does),
--      4 whether its caller was told that it was not accepted (1): a worker that has it stops, and nobody pays,
--      5 whether nothing of it can still be under way (1): where there is no record, none is left
-- Returns the state that was found: 'accepted' and 'missing' are void now, any other is unchanged. 'gone' is a request that
-- has ended, whose caller was told that it was not accepted, and has been charged for an answer that nobody can have.
local values = redis.call('HMGET', KEYS[1], 'state', 'idempotency', 'gone', 'firstTokenAt', 'unheard', 'joined', 'keep')
local state = values[1]
if not state and ARGV[5] == '1' then return 'missing' end
-- Under an Idempotency-Key the caller's next try finds it. Where nothing is kept that may be too late, so it runs anew then,
-- unless another call reads this one.
local is_found = values[2] and (values[7] ~= '0' or values[6])
if state == 'running' and ARGV[4] == '1' and not is_found then
  forget_idempotency(KEYS[1], ARGV[1])
  redis.call('HSET', KEYS[1], 'cancel', '1', 'unheard', '1')
  redis.call('@PUBLISH@', KEYS[10], ARGV[1])
end
if state == 'done' and ARGV[4] == '1' and values[3] and (values[4] or '') ~= '' and not values[5] and not values[6] then
  return 'gone'
end
if state and state ~= 'accepted' then return state end
if state then
  drop_accepted(ARGV[1])
  redis.call('HSET', KEYS[1], 'hold', 0, 'holdTokens', 0)
  if ARGV[3] ~= '' then
    redis.call('HSET', KEYS[1], 'sent', 1)
    emit(KEYS[6], redis.call('HGET', KEYS[1], 'channels'), ARGV[1], 1, ARGV[3], ARGV[2], '')
  end
end
redis.call('HDEL', KEYS[1], 'metadata')
redis.call('HSET', KEYS[1], 'state', 'void')
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return state or 'missing'
