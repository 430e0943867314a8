-- Adds one batch of text to the request's stream, if this attempt still owns the request.
-- KEYS 1 record, 2 stream
-- ARGV 1 request id, 2 fence, 3 last sequence number, 4 payload, 5 prompt tokens, for whoever has to end the request
-- Returns 'superseded', 'cancelled' (written, stop soon) or 'ok'.
local values = redis.call('HMGET', KEYS[1], 'state', 'fence', 'channels', 'cancel', 'life', 'sent')
if values[1] ~= 'running' or values[2] ~= ARGV[2] then return 'superseded' end
-- Sent again after a lost acknowledgement: it is written already.
if tonumber(values[6]) >= tonumber(ARGV[3]) then return values[4] and 'cancelled' or 'ok' end
emit(KEYS[2], values[3], ARGV[1], ARGV[3], ARGV[4], values[5])
if values[6] == '0' then
  redis.call('HSET', KEYS[1], 'sent', ARGV[3], 'firstTokenAt', int(now_ms()), 'prompt', ARGV[5])
else
  redis.call('HSET', KEYS[1], 'sent', ARGV[3])
end
return values[4] and 'cancelled' or 'ok'
