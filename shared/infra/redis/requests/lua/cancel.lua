-- Cancels a request: one that nobody has started ends here, a running one is told to stop.
-- KEYS those of drop.lua, 10 channel of cancelled requests, 11 mark of a request that has ended
-- ARGV 1 request id, 2 tenant id, 3 last entry, 4 its last sequence number, 5 retention in ms (0 keeps nothing) where the
--      record has none of its own, 6 billed (1 live, 0 test, '' either), 7 how long its body may be kept elsewhere
-- Returns the state that was found; '' for an unknown request, another tenant's or one of the other mode.
local values = redis.call('HMGET', KEYS[1], 'tenant', 'state', 'channels', 'billed', 'keep')
if values[1] ~= ARGV[2] or values[2] == 'void' or not is_of_mode(values[4], ARGV[6]) then return '' end
if values[2] == 'running' then
  redis.call('HSET', KEYS[1], 'cancel', '1')
  redis.call('@PUBLISH@', KEYS[10], ARGV[1])
end
if values[2] ~= 'accepted' then return values[2] end
local keep = ARGV[5] == '0' and '0' or values[5] or ARGV[5]
drop_accepted(ARGV[1])
emit(KEYS[6], values[3], ARGV[1], ARGV[4], ARGV[3], keep == '0' and READING_MS or keep, '')
redis.call('HSET', KEYS[1], 'state', 'done', 'status', 'cancelled', 'sent', ARGV[4], 'finishedAt', int(now_ms()), 'hold', 0, 'holdTokens', 0)
if keep == '0' then
  keep_nothing(KEYS[1], KEYS[6], KEYS[6], ARGV[1], now_ms())
else
  redis.call('PEXPIRE', KEYS[1], keep)
  -- The record may be gone before anybody looks: it would be taken for one that Redis has lost, and run again.
  if values[5] then redis.call('SET', KEYS[11], 1, 'PX', ARGV[7]) end
end
return 'accepted'
