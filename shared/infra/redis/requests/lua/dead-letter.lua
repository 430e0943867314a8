-- Moves an entry that cannot be booked from the outbox to the dead letters, whole or not at all.
-- KEYS 1 outbox, 2 dead letters; ARGV 1 consumer group as in acknowledge.lua, 2 id of the entry, 3 its text
redis.call('XADD', KEYS[2], '*', 's', ARGV[3])
redis.call('XACK', KEYS[1], ARGV[1], ARGV[2])
return redis.call('XDEL', KEYS[1], ARGV[2])
