-- Adds one batch of text to the request's stream, if this attempt still owns the request.
-- KEYS 1 record, 2 stream
-- ARGV 1 request id, 2 fence, 3 last sequence number, 4 payload, 5 prompt tokens, for whoever has to end the request,
--      6 name of the claim ('' not compared), 7 sequence number of the event before
-- Returns 'superseded', 'cancelled' (written, stop soon) or 'ok'; 'accepted' where Redis came back without the claim,
-- and 'behind' with the last number it has where it came back without some of the text.
local values = redis.call('HMGET', KEYS[1], 'state', 'fence', 'channels', 'cancel', 'life', 'sent', 'owner')
if values[1] == 'accepted' then return 'accepted' end
if values[1] ~= 'running' or values[2] ~= ARGV[2] then return 'superseded' end
if ARGV[6] ~= '' and values[7] ~= ARGV[6] then return 'superseded' end
-- Sent again after a lost acknowledgement: it is written already.
if tonumber(values[6]) >= tonumber(ARGV[3]) then return values[4] and 'cancelled' or 'ok' end
if tonumber(values[6]) ~= tonumber(ARGV[7]) then return 'behind ' .. values[6] end
emit(KEYS[2], values[3], ARGV[1], ARGV[3], ARGV[4], values[5], ARGV[6])
if values[6] == '0' then
  redis.call('HSET', KEYS[1], 'sent', ARGV[3], 'firstTokenAt', int(now_ms()), 'prompt', ARGV[5])
else
  redis.call('HSET', KEYS[1], 'sent', ARGV[3])
end
return values[4] and 'cancelled' or 'ok'
