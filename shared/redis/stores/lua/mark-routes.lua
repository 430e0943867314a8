-- Marks that routes have changed. A full Redis would refuse a plain SET, and routes may be changed even then.
-- KEYS 1 mark; ARGV 1 a value that it never had
redis.call('SET', KEYS[1], ARGV[1])
return 1
