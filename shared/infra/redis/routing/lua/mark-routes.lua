-- Says that routes have changed. A plain SET would be refused in a full Redis, where routes may be changed, too.
-- KEYS 1 mark; ARGV 1 a value that it never had
redis.call('SET', KEYS[1], ARGV[1])
return 1
