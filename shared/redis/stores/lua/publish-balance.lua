-- Publishes a tenant's ledger balance from MongoDB: only a higher version replaces a lower one, and its charges stop
-- being pending. Safe to repeat.
-- KEYS 1 account, 2 pending; ARGV 1 version, 2 balance in micro-credits,
-- 3 number of months, then month and tokens each, then settled request ids
local version = tonumber(redis.call('HGET', KEYS[1], 'version')) or -1
local months = tonumber(ARGV[3])
if tonumber(ARGV[1]) > version then
  local write = { 'version', ARGV[1], 'ledgerBalance', ARGV[2] }
  for index = 1, months do
    write[#write + 1] = 'ledgerTokens:' .. ARGV[2 + index * 2]
    write[#write + 1] = ARGV[3 + index * 2]
  end
  redis.call('HSET', KEYS[1], unpack(write))
end

-- A request that is named twice owes once.
local ids, named, settled, changes = {}, {}, {}, { 'pending', 0 }
for index = 4 + months * 2, #ARGV do
  if not named[ARGV[index]] then
    named[ARGV[index]] = true
    ids[#ids + 1] = ARGV[index]
  end
end
if #ids == 0 then return 0 end
local by_month = {}
for index, charge in ipairs(redis.call('HMGET', KEYS[2], unpack(ids))) do
  if charge then
    local micro, tokens, month = string.match(charge, '^(-?%d+):(-?%d+):(%d+)$')
    settled[#settled + 1] = ids[index]
    changes[2] = changes[2] - tonumber(micro)
    by_month[month] = (by_month[month] or 0) - tonumber(tokens)
  end
end
if #settled == 0 then return 0 end
for month, tokens in pairs(by_month) do
  changes[#changes + 1] = 'pendingTokens:' .. month
  changes[#changes + 1] = tokens
end
redis.call('HDEL', KEYS[2], unpack(settled))
move(KEYS[1], unpack(changes))
return #settled
