-- A waiting request's position among its tenant's, from 1, and the ms until a worker may have it; nil if it does not
-- wait.
-- KEYS 1 record, 2 the tenant's open requests, 3 the tenant's account, 4 waiting queue, 5 list of jobs handed out
-- before, 6 queue statistics; 7 to 9 the same for batches; ARGV 1 request id
-- A tenant's pace, if recent, shows how much others take between its requests.
local RECENT_MS = 30000
local PACE_MS = 250
local values = redis.call('HMGET', KEYS[1], 'state', 'queue')
if values[1] ~= 'accepted' then return nil end
local at = values[2] == 'batch' and 7 or 4
local prioritized, before, statistics = KEYS[at], KEYS[at + 1], KEYS[at + 2]
local tag = redis.call('ZSCORE', prioritized, ARGV[1])
if not tag then return nil end
local ahead = redis.call('ZCOUNT', prioritized, '-inf', '(' .. tag) + redis.call('LLEN', before)
local queue = redis.call('HMGET', statistics, 'pace:queue', 'gap:queue')
local wait = (ahead + 1) * (tonumber(queue[1]) or tonumber(queue[2]) or PACE_MS)
local rank = redis.call('ZRANK', KEYS[2], ARGV[1])
-- Lines of batches are not among the open requests.
if not rank then return { redis.call('ZRANK', prioritized, ARGV[1]) + 1, int(wait) } end
local position = math.max(1, rank - taken_of(KEYS[2], prioritized, redis.call('ZCARD', KEYS[2])) + 1)
local own = redis.call('HMGET', KEYS[3], 'pace:own', 'paced:own')
if own[1] and math.abs(now_ms() - number_of(own[2])) < RECENT_MS then wait = position * own[1] end
return { position, int(wait) }
