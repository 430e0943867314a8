-- Takes of the minute in which a tenant's uploads may write. One that has begun may take more than there is; the next one
-- begins once that is made up.
-- KEYS 1 when all that was written is made up; ARGV 1 what is taken in ms (0 only looks)
-- Returns the milliseconds until another upload may begin.
local now, taken = now_ms(), tonumber(ARGV[1])
-- A clock that was set back must not lock a tenant out. Ten uploads at a time take less than this.
local made_up = math.min(tonumber(redis.call('GET', KEYS[1]) or 0), now + 10 * MINUTE_MS)
made_up = math.max(made_up, now - MINUTE_MS) + taken
if taken > 0 then redis.call('SET', KEYS[1], int(made_up), 'PX', int(made_up - now + MINUTE_MS + 1)) end
return math.max(0, made_up - now)
