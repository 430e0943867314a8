-- Returns what an ingress must know of a request to look it up or to read its stream. With a channel the ingress becomes a
-- reader.
-- KEYS 1 record; ARGV 1 tenant id, 2 channel ('': only looks), 3 reader lease in ms, 4 billed (1 live, 0 test)
-- Returns nil for an unknown request, another tenant's or one of the other mode.
local values = redis.call('HMGET', KEYS[1], 'tenant', 'state', 'status', 'tier', 'metadata', 'sent', 'acceptedAt', 'startedAt',
  'firstTokenAt', 'finishedAt', 'channels', 'gone', 'billed')
if values[1] ~= ARGV[1] or values[2] == 'void' or not is_of_mode(values[13], ARGV[4]) then return nil end
if ARGV[2] ~= '' and values[2] ~= 'done' then
  local channels = values[11] or ''
  if not string.find(',' .. channels .. ',', ',' .. ARGV[2] .. ',', 1, true) then
    redis.call('HSET', KEYS[1], 'channels', channels == '' and ARGV[2] or channels .. ',' .. ARGV[2])
  end
  -- From now on another call than the one that sent it may read the answer (void.lua).
  redis.call('HSET', KEYS[1], 'reader:' .. ARGV[2], int(now_ms() + tonumber(ARGV[3])), 'joined', '1')
end
for index = 1, 12 do values[index] = values[index] or '' end
return values
