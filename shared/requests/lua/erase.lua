-- Erases all that Redis has of an ended request. A tombstone keeps late admissions, deliveries and answers of its id
-- from bringing anything back. Safe to repeat.
-- KEYS 1 record, 2 body, 3 stream, 4 whole answer, 5 in-flight requests, 6 idempotency record (or the record)
-- ARGV 1 request id, 2 tenant id, 3 erases up to this place in the order of acceptance, 4 lifetime of the tombstone in
-- ms, 5 billed (1 live, 0 test, '' either)
-- Returns the number erased (0: nothing was there); 'later' for one accepted after argument 3; 'busy' for one that has
-- not ended; 'foreign' for another tenant's or one of the other mode.
local values = redis.call('HMGET', KEYS[1], 'state', 'tenant', 'seq', 'acceptedAt', 'billed')
if values[2] and (values[2] ~= ARGV[2] or not is_of_mode(values[5], ARGV[5])) then return 'foreign' end
-- A restored answer has only its time of acceptance.
local seq = tonumber(values[3]) or number_of(values[4]) * 1000
if values[2] and seq > tonumber(ARGV[3]) then return 'later' end
if values[1] == 'accepted' or values[1] == 'running' then return 'busy' end
local found = (values[2] or redis.call('EXISTS', KEYS[2], KEYS[3], KEYS[4]) > 0) and 1 or 0
forget_idempotency(KEYS[1], ARGV[1])
if KEYS[6] ~= KEYS[1] then
  local first = redis.call('GET', KEYS[6])
  if first and string.sub(first, 1, #ARGV[1]) == ARGV[1] then redis.call('DEL', KEYS[6]) end
end
redis.call('DEL', KEYS[1], KEYS[2], KEYS[3], KEYS[4])
redis.call('ZREM', KEYS[5], ARGV[1])
redis.call('HSET', KEYS[1], 'state', 'void', 'erased', '1')
redis.call('PEXPIRE', KEYS[1], ARGV[4])
return found
