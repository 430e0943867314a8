-- Puts jobs back that a worker has taken and will not start: before the waiting queue, because they were handed out
-- before. Jobs whose lock the worker has lost stay. Safe to repeat.
-- KEYS 1 list of jobs handed out before, 2 active jobs, 3 settings of the queue, 4 marker
-- ARGV 1 lock, which also names the claims, 2 and 3 how names of jobs and records begin, then the jobs' ids, the next
-- one first
-- Returns the number put back.
local count = 0

-- The next delivery is the first one again.
local function undo_claim(record)
  local values = redis.call('HMGET', record, 'state', 'fence', 'owner')
  if values[1] ~= 'running' or values[2] ~= '1' or values[3] ~= ARGV[1] then return end
  redis.call('HSET', record, 'state', 'accepted', 'fence', 0)
  redis.call('HDEL', record, 'owner', 'startedAt', 'leased')
end

for index = #ARGV, 4, -1 do
  local id = ARGV[index]
  local job = ARGV[2] .. id
  if redis.call('GET', job .. ':@lock@') == ARGV[1] then
    redis.call('DEL', job .. ':@lock@')
    redis.call('HINCRBY', job, '@attemptsStarted@', -1)
    redis.call('LREM', KEYS[2], -1, id)
    redis.call('RPUSH', KEYS[1], id)
    undo_claim(ARGV[3] .. id)
    count = count + 1
  end
end
if count > 0 and redis.call('HEXISTS', KEYS[3], '@paused@') == 0 then redis.call('ZADD', KEYS[4], 0, '@jobWaits@') end
return count
