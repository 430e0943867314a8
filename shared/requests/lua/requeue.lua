-- Queues a failed request that was admitted again, with its time of acceptance and its last delivery's fence: that
-- delivery is refused, whatever Redis comes back without, and the next fence is higher. The limits on requests counted
-- it when it was first accepted. Safe to repeat.
-- KEYS 1 record, 2 body, 3 job, 4 waiting queue, 5 marker, 6 settings of the queue, 7 requests of its key, 8 account,
-- also with what the tenant's requests take together
-- ARGV 1 request id, 2 body, 3 lifetime of the body in ms, 4 name of the job, 5 its data, 6 its options, 7 acceptance,
-- 8 its place in the order of acceptance, 9 fence
-- Returns the found state; only 'accepted' is queued.

-- Takes one request out of the second of `time`.
local function uncount_request(account, time)
  local window = read_window(account, redis.call('HGET', account, 'minute'), now_ms())
  if change_second(window, second_of(time), -1, 0) then redis.call('HSET', account, 'minute', text_of_window(window)) end
end

local values = redis.call('HMGET', KEYS[1], 'state', 'startTag', 'acceptedAt')
if values[1] ~= 'accepted' then return values[1] or 'missing' end
if redis.call('EXISTS', KEYS[2]) == 1 then return values[1] end
redis.call('SET', KEYS[2], ARGV[2], 'PX', ARGV[3])
redis.call('HSET', KEYS[1], 'acceptedAt', ARGV[7], 'seq', ARGV[8], 'fence', ARGV[9], 'base', ARGV[9])
-- Without an estimate nobody corrects the token windows, which would look for the first acceptance's second.
redis.call('HDEL', KEYS[1], 'estimate')
add_job(KEYS[3], KEYS[4], KEYS[5], KEYS[6], ARGV[1], ARGV[4], ARGV[5], ARGV[6], values[3],
  values[2] or decimal(values[3] * VIRTUAL_TIME_PER_MS))
-- BullMQ's count of the deliveries of a job.
redis.call('HSET', KEYS[3], '@attemptsStarted@', ARGV[9])
-- The log keeps the request under its first acceptance, whose minute may not be over. Removing the entry could empty
-- the log, and the next request would make one without a time to live.
redis.call('ZADD', KEYS[7], 'XX', ARGV[7], ARGV[1])
uncount_request(KEYS[8], number_of(values[3]))
return values[1]
