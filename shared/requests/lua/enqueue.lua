-- Queues a request that was admitted without its body: the body is too large to be sent with every admission,
-- must be stored in MongoDB first, or was lost by Redis. Safe to repeat.
-- KEYS 1 record, 2 body, 3 job, 4 waiting queue, 5 marker, 6 settings of the queue, 7 open requests of the tenant
-- ARGV 1 request id, 2 body, 3 lifetime of the body in ms, 4 name of the job, 5 its data, 6 its options,
--      7 bytes that the bodies of the tenant's open requests may have together ('': any)
-- Returns the state that was found; only 'accepted' is queued. 'full': it would be, but for the bytes.
local values = redis.call('HMGET', KEYS[1], 'state', 'startTag', 'acceptedAt')
if values[1] ~= 'accepted' then return values[1] or 'missing' end
-- An image has few tokens and many bytes, so no other limit holds large bodies back. A thousand smaller ones may stay.
if ARGV[7] ~= '' and #ARGV[2] * 1000 > tonumber(ARGV[7]) then
  local bytes, bodies = #ARGV[2], string.sub(KEYS[2], 1, -#ARGV[1] - 1)
  for _, other in ipairs(redis.call('ZRANGE', KEYS[7], 0, -1)) do
    if other ~= ARGV[1] then bytes = bytes + redis.call('STRLEN', bodies .. other) end
  end
  if bytes > tonumber(ARGV[7]) then return 'full' end
end
redis.call('SET', KEYS[2], ARGV[2], 'PX', ARGV[3])
forget_ended_job(KEYS[3], KEYS[4], ARGV[1])
if redis.call('EXISTS', KEYS[3]) == 0 then
  add_job(KEYS[3], KEYS[4], KEYS[5], KEYS[6], ARGV[1], ARGV[4], ARGV[5], ARGV[6], values[3],
    values[2] or decimal(values[3] * VIRTUAL_TIME_PER_MS))
end
return values[1]
