-- Takes entries out of the outbox for good. A full Redis refuses even this in a transaction, but not in a script.
-- KEYS 1 outbox; ARGV 1 consumer group of workers of an earlier version, then the ids of the entries
local ids = {}
for index = 2, #ARGV do ids[#ids + 1] = ARGV[index] end
redis.call('XACK', KEYS[1], ARGV[1], unpack(ids))
return redis.call('XDEL', KEYS[1], unpack(ids))
