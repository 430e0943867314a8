-- Refuses a key or a tenant from now on. A plain SET would be refused in a full Redis, where a key may be revoked, too.
-- KEYS 1 flag; ARGV 1 lifetime in seconds
return redis.call('SET', KEYS[1], '1', 'EX', ARGV[1])
