-- Recounts what tenants have in flight from the records, and corrects the sums that admission reads. Records and
-- pending charges share these keys' hash tag, so the script may build their names.
-- KEYS 1 in-flight requests, then account and pending of each tenant in turn
-- ARGV 1 prefix of the records' keys, 2 '1' repairs, then the tenants' ids
-- Returns per tenant: version and balance in Redis ('' for none), absolute drift of held and pending micro-credits.
local tenants, sums = {}, {}
for index = 3, #ARGV do
  tenants[#tenants + 1] = ARGV[index]
  sums[ARGV[index]] = { held = 0, pending = 0 }
end
local function add(sum, field, value)
  sum[field] = (sum[field] or 0) + value
end

for _, id in ipairs(redis.call('ZRANGE', KEYS[1], 0, -1)) do
  local values = redis.call('HMGET', ARGV[1] .. id, 'tenant', 'state', 'billed', 'month', 'hold', 'holdTokens')
  local sum = sums[values[1] or '']
  if sum and values[3] == '1' and (values[2] == 'accepted' or values[2] == 'running') then
    add(sum, 'held', number_of(values[5]))
    add(sum, 'heldTokens:' .. values[4], number_of(values[6]))
  end
end

local reply = {}
for index, tenant in ipairs(tenants) do
  local account, pending, sum = KEYS[index * 2], KEYS[index * 2 + 1], sums[tenant]
  for _, charge in ipairs(redis.call('HVALS', pending)) do
    local micro, tokens, month = string.match(charge, '^(-?%d+):(-?%d+):(%d+)$')
    add(sum, 'pending', tonumber(micro))
    add(sum, 'pendingTokens:' .. month, tonumber(tokens))
  end
  local fields, found = redis.call('HGETALL', account), {}
  for at = 1, #fields, 2 do found[fields[at]] = fields[at + 1] end
  for name in pairs(found) do
    if (string.find(name, '^heldTokens:') or string.find(name, '^pendingTokens:')) and not sum[name] then sum[name] = 0 end
  end
  if ARGV[2] == '1' and found.version then
    for name, value in pairs(sum) do
      if value ~= number_of(found[name]) then redis.call('HSET', account, name, int(value)) end
    end
  end
  reply[#reply + 1] = { found.version or '', found.ledgerBalance or '',
    int(math.abs(sum.held - number_of(found.held))), int(math.abs(sum.pending - number_of(found.pending))) }
end
return reply
