-- Blocks or unblocks a key or a tenant, even in a full Redis, which would refuse a plain SET. A changed key has another
-- value than a revoked one. A tenant that moves, or has moved, keeps its mark (set-move-marker.lua): this shard admits
-- nothing of it.
-- KEYS 1 flag; ARGV 1 lifetime in seconds, 0: unblocks, 2 value
local flag = redis.call('GET', KEYS[1])
if flag and flag ~= '1' then return 0 end
if ARGV[1] == '0' then return redis.call('DEL', KEYS[1]) end
redis.call('SET', KEYS[1], ARGV[2], 'EX', ARGV[1])
return 1
