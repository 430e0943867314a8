-- Cancels a request: one that nobody has started ends here, a running one is told to stop.
-- KEYS 1 record, 2 body, 3 inflight, 4 account, 5 test allowance, 6 token log, 7 token weights, 8 stream,
--      9 channel of cancelled requests
-- ARGV 1 request id, 2 tenant id, 3 last entry, 4 its last sequence number, 5 retention in ms
-- Returns the state that was found; '' for an unknown request or another tenant's.
local values = redis.call('HMGET', KEYS[1], 'tenant', 'state', 'channels')
if values[1] ~= ARGV[2] or values[2] == 'void' then return '' end
if values[2] == 'running' then
  redis.call('HSET', KEYS[1], 'cancel', '1')
  redis.call('@PUBLISH@', KEYS[9], ARGV[1])
end
if values[2] ~= 'accepted' then return values[2] end
drop_accepted(ARGV[1])
emit(KEYS[8], values[3], ARGV[1], ARGV[4], ARGV[3], ARGV[5])
redis.call('HSET', KEYS[1], 'state', 'done', 'status', 'cancelled', 'sent', ARGV[4], 'finishedAt', int(now_ms()), 'hold', 0, 'holdTokens', 0)
redis.call('PEXPIRE', KEYS[1], ARGV[5])
return 'accepted'
