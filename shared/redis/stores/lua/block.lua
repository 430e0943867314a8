-- Blocks a key or a tenant, or unblocks it. A key that has changed has another value there than a revoked one. A full
-- Redis would refuse a plain SET, and a key may be revoked even then. A tenant that is being moved, or has been, keeps
-- its mark (set-move-marker.lua): this shard must admit nothing of it any more.
-- KEYS 1 flag; ARGV 1 lifetime in seconds, 0: unblocks, 2 value
local flag = redis.call('GET', KEYS[1])
if flag and flag ~= '1' then return 0 end
if ARGV[1] == '0' then return redis.call('DEL', KEYS[1]) end
redis.call('SET', KEYS[1], ARGV[2], 'EX', ARGV[1])
return 1
