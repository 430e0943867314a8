-- The shard's time in microseconds, which is also the order of acceptance (admit.lua).
-- KEYS  1 any key of the shard
return now_us()
