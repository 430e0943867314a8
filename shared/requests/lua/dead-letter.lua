-- Moves an entry from the outbox to the dead letters, or back. Safe to repeat and to call concurrently.
-- KEYS 1 from, 2 to; ARGV 1 id of the entry, 2 its text. Returns the number moved: 0 if the entry is not in 1.
if #redis.call('XRANGE', KEYS[1], ARGV[1], ARGV[1]) == 0 then return 0 end
redis.call('XADD', KEYS[2], '*', 's', ARGV[2])
return redis.call('XDEL', KEYS[1], ARGV[1])
