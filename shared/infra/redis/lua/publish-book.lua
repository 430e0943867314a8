-- Brings a tenant's book from MongoDB to Redis: a higher version replaces a lower one, never the other way round; the
-- charges that this version contains are pending no more. Safe to repeat.
-- KEYS 1 account, 2 pending
-- ARGV 1 version, 2 balance in micro-credits, 3 number of months, then month and tokens each, then settled request ids
local version = tonumber(redis.call('HGET', KEYS[1], 'version')) or -1
local months = tonumber(ARGV[3])
if tonumber(ARGV[1]) > version then
  redis.call('HSET', KEYS[1], 'version', ARGV[1], 'book', ARGV[2])
  for index = 1, months do
    redis.call('HSET', KEYS[1], 'bt:' .. ARGV[2 + index * 2], ARGV[3 + index * 2])
  end
end
for index = 4 + months * 2, #ARGV do
  local owed = redis.call('HGET', KEYS[2], ARGV[index])
  if owed then
    local micro, tokens, month = string.match(owed, '^(-?%d+):(-?%d+):(%d+)$')
    redis.call('HDEL', KEYS[2], ARGV[index])
    redis.call('HINCRBY', KEYS[1], 'pend', int(-tonumber(micro)))
    redis.call('HINCRBY', KEYS[1], 'pt:' .. month, int(-tonumber(tokens)))
  end
end
return redis.call('HGET', KEYS[1], 'book')
