-- Restores the time and place of a request's first acceptance, only while it waits: a record that is gone would come
-- back with just these fields and no time to live. Safe to repeat.
-- KEYS 1 record; ARGV 1 acceptance (milliseconds since the epoch), 2 place in the order of acceptance
-- Returns 1, or 0 if the request does not wait.
if redis.call('HGET', KEYS[1], 'state') ~= 'accepted' then return 0 end
redis.call('HSET', KEYS[1], 'acceptedAt', ARGV[1], 'seq', ARGV[2])
return 1
