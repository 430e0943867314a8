-- Refuses a key or a tenant from now on, or no longer. A plain SET would be refused in a full Redis, where a key may be
-- revoked, too. A tenant that is moved, or has been, keeps its mark (mark-move.lua): nobody may be admitted here any more.
-- KEYS 1 flag; ARGV 1 lifetime in seconds, 0: no longer
local flag = redis.call('GET', KEYS[1])
if flag and flag ~= '1' then return 0 end
if ARGV[1] == '0' then return redis.call('DEL', KEYS[1]) end
redis.call('SET', KEYS[1], '1', 'EX', ARGV[1])
return 1
