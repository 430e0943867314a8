-- Cancels a request: a waiting one ends here; the worker of a running one gets a signal to stop.
-- KEYS those of drop.lua, 10 channel of cancelled requests
-- ARGV 1 request id, 2 tenant id, 3 last entry, 4 its last sequence number, 5 retention in ms (0: keeps nothing) unless
-- the record has its own, 6 billed (1 live, 0 test, '' either)
-- Returns the found state, with drop_accepted's values if accepted; '' if unknown, another tenant's or of the other
-- mode.
local tenant, state, channels, billed, own_retention, on_disconnect =
  unpack(redis.call('HMGET', KEYS[1], 'tenant', 'state', 'channels', 'billed', 'retentionMs', 'onDisconnect'))
if tenant ~= ARGV[2] or state == 'void' or not is_of_mode(billed, ARGV[6]) then return '' end
if state == 'running' then
  redis.call('HSET', KEYS[1], 'cancel', '1')
  redis.call('@PUBLISH@', KEYS[10], ARGV[1])
end
if state ~= 'accepted' then return state end
local retention = ARGV[5] == '0' and '0' or own_retention or ARGV[5]
local dropped = drop_accepted(ARGV[1])
-- This unpaid record may stay for a day, so it is kept small: the end is plain text, and metadata is dropped.
local tag = tag_of(KEYS[3])
local answer = tag .. 'a:' .. ARGV[1]
emit_whole(answer, channels, ARGV[1], ARGV[4] .. '\n' .. ARGV[3], retention == '0' and READING_MS or retention)
if own_retention then redis.call('HDEL', KEYS[1], 'metadata') end
redis.call('HSET', KEYS[1], 'state', 'done', 'status', 'cancelled', 'lastSeq', ARGV[4], 'finishedAt', int(now_ms()),
  'hold', 0, 'holdTokens', 0)
leave_end(tag, KEYS[4], ARGV[1], KEYS[1], KEYS[6], answer, retention, own_retention, on_disconnect, now_ms())
return dropped
