-- Replaces a provider's state (circuit breaker, capacity) if it is still the one that the new one was made from.
-- KEYS 1 states by name, 2 events; ARGV 1 name, 2 the state as it was read ('' none), 3 the new state ('' none),
-- 4 the event of a change ('' none), 5 events kept, 6 channel ('' none needs to hear of it).
-- Returns 1 or 0, the state that holds, and the time in ms.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local current = redis.call('HGET', KEYS[1], ARGV[1]) or ''
if current ~= ARGV[2] then return { 0, current, now } end
if ARGV[3] ~= current then
  if ARGV[3] == '' then
    redis.call('HDEL', KEYS[1], ARGV[1])
  else
    redis.call('HSET', KEYS[1], ARGV[1], ARGV[3])
  end
end
if ARGV[4] ~= '' then redis.call('XADD', KEYS[2], 'MAXLEN', '~', ARGV[5], '*', 'd', ARGV[4]) end
if ARGV[6] ~= '' then redis.call('@PUBLISH@', ARGV[6], ARGV[1] .. '\n' .. ARGV[3]) end
return { 1, ARGV[3], now }
