-- Sets when a request is next due for the sweep. A full Redis, which the sweep has to empty, would refuse a plain ZADD.
-- KEYS 1 inflight; ARGV 1 request id, 2 delay in ms
return redis.call('ZADD', KEYS[1], 'XX', int(now_ms() + tonumber(ARGV[2])), ARGV[1])
