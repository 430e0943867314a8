-- Queues a request without its body: this was too large for every admission, had to be stored in MongoDB first, or was
-- lost by Redis. Safe to repeat.
-- KEYS 1 record, 2 body, 3 job, 4 waiting queue, 5 marker, 6 settings of the queue
-- ARGV 1 request id, 2 body, 3 lifetime of the body in ms, 4 name of the job, 5 its data, 6 its options
-- Returns the found state; only 'accepted' is queued.
local values = redis.call('HMGET', KEYS[1], 'state', 'startTag', 'acceptedAt')
if values[1] ~= 'accepted' then return values[1] or 'missing' end
redis.call('SET', KEYS[2], ARGV[2], 'PX', ARGV[3])
forget_ended_job(KEYS[3], KEYS[4], ARGV[1])
if redis.call('EXISTS', KEYS[3]) == 0 then
  add_job(KEYS[3], KEYS[4], KEYS[5], KEYS[6], ARGV[1], ARGV[4], ARGV[5], ARGV[6], values[3],
    values[2] or decimal(values[3] * VIRTUAL_TIME_PER_MS))
end
return values[1]
