-- Takes, renews or gives up a task's lease. Leaves another process's, unless it is longer than a lease can be: the
-- clock was set back after it was made, and its process may be dead, or can lead again later.
-- KEYS 1 lease; ARGV 1 process id, 2 lease in ms (0: give it up), 3 'kept' to renew it only if it never ran out.
-- Returns 1 while this process leads.
local leader = redis.call('GET', KEYS[1])
if leader and leader ~= ARGV[1] then
  local wanted = ARGV[3] == 'kept' and 0 or tonumber(ARGV[2])
  if wanted == 0 or redis.call('PTTL', KEYS[1]) <= wanted then return 0 end
end
if not leader and ARGV[3] == 'kept' then return 0 end
if ARGV[2] == '0' then
  redis.call('DEL', KEYS[1])
  return 0
end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1
