-- Takes time of the minute in which a tenant's uploads may write. A begun upload may take more than is left; the next
-- one waits until that is made up.
-- KEYS 1 time when all writes are made up; ARGV 1 ms to take (0 only looks). Returns the ms until another upload may
-- begin.
local now, taken = now_ms(), tonumber(ARGV[1])
-- A clock that was set back must not lock a tenant out. Ten uploads at a time take less than this.
local made_up = math.min(tonumber(redis.call('GET', KEYS[1]) or 0), now + 10 * MINUTE_MS)
made_up = math.max(made_up, now - MINUTE_MS) + taken
if taken > 0 then redis.call('SET', KEYS[1], int(made_up), 'PX', int(made_up - now + MINUTE_MS + 1)) end
return math.max(0, made_up - now)
