-- Renews or ends an ingress's reading of a request; when the last reader has ended, the disconnect grace starts.
-- KEYS 1 record; ARGV 1 channel, 2 lease in ms (0 ends it)
local state = redis.call('HGET', KEYS[1], 'state')
if state == 'accepted' or state == 'running' then
  redis.call('HSET', KEYS[1], 'reader:' .. ARGV[1], int(now_ms() + tonumber(ARGV[2])))
end
return state or 'missing'
