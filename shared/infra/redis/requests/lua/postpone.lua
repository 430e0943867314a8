-- Makes a request overdue again, for the sweep. A plain ZADD would be refused in a full Redis, which the sweep has to
-- empty.
-- KEYS 1 inflight; ARGV 1 request id, 2 delay in ms
return redis.call('ZADD', KEYS[1], 'XX', int(now_ms() + tonumber(ARGV[2])), ARGV[1])
