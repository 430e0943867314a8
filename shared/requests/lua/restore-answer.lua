-- Restores an ended request for a while. Leaves an existing record, unless it is a tombstone of which no caller was
-- told (void.lua), or only its answer is gone. Safe to repeat.
-- KEYS 1 record, 2 stream, 3 idempotency record (the record if there is none), 4 whole answer
-- ARGV 1 lifetime in ms, 2 value of the idempotency record ('' none), 3 its lifetime in ms, 4 number of the record's
-- fields, then names and values in turn, then sequence number and payload of each entry in turn
if ARGV[2] ~= '' then redis.call('SET', KEYS[3], ARGV[2], 'PX', ARGV[3], 'NX') end
if redis.call('EXISTS', KEYS[1]) == 1 then
  local state, voidUnconfirmed, is_gone = unpack(redis.call('HMGET', KEYS[1], 'state', 'voidUnconfirmed', 'gone'))
  local is_answer_away = state == 'done' and not is_gone and redis.call('EXISTS', KEYS[2], KEYS[4]) == 0
  if not is_answer_away and (state ~= 'void' or not voidUnconfirmed) then return 0 end
  if state == 'void' then redis.call('DEL', KEYS[1]) end
end
local first_entry = 5 + tonumber(ARGV[4]) * 2
local fields = {}
for index = 5, first_entry - 1 do fields[#fields + 1] = ARGV[index] end
redis.call('HSET', KEYS[1], unpack(fields))
redis.call('PEXPIRE', KEYS[1], ARGV[1])
redis.call('DEL', KEYS[2])
for index = first_entry, #ARGV, 2 do
  redis.call('XADD', KEYS[2], ARGV[index] .. '-0', 'd', ARGV[index + 1])
end
redis.call('PEXPIRE', KEYS[2], ARGV[1])
return 1
