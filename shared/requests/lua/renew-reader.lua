-- Renews or ends an ingress's reader lease; the last reader's end starts the disconnect grace. A reader that ends it
-- leaves no lease, unlike one that could not renew (renew.lua).
-- KEYS 1 record, 2 stream, 3 whole answer; ARGV 1 channel, 2 lease in ms (0 ends it)
local state, channels = unpack(redis.call('HMGET', KEYS[1], 'state', 'channels'))
local is_open = state == 'accepted' or state == 'running'
if is_open and ARGV[2] == '0' then
  redis.call('HDEL', KEYS[1], 'reader:' .. ARGV[1])
  redis.call('HSET', KEYS[1], 'left', int(now_ms()))
elseif is_open then
  lease_reader(KEYS[1], channels or '', ARGV[1], ARGV[2])
elseif ARGV[2] ~= '0' then
  keep_for_readers(KEYS[2], KEYS[3])
end
return state or 'missing'
