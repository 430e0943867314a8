-- Moves an entry from the outbox to the dead letters, or back, all or nothing. Safe to repeat and to call concurrently.
-- KEYS 1 where it is, 2 where it goes; ARGV 1 id of the entry, 2 its text
-- Returns how many were moved: 0 if the entry is no longer there.
if #redis.call('XRANGE', KEYS[1], ARGV[1], ARGV[1]) == 0 then return 0 end
redis.call('XADD', KEYS[2], '*', 's', ARGV[2])
return redis.call('XDEL', KEYS[1], ARGV[1])
