-- Removes booked entries from the outbox. One whose charge is still pending stays: Redis came back without the balance
-- that contains it. A full Redis refuses even this in a transaction, but not in a script.
-- KEYS 1 outbox, then the pending charges of each tenant in turn
-- ARGV for each tenant its number of entries, then ids of each entry and its request in turn. Returns the number
-- removed.
local ids, at = {}, 1
for tenant = 2, #KEYS do
  local count, requests = tonumber(ARGV[at]), {}
  for index = 1, count do requests[index] = ARGV[at + 2 * index] end
  for index, owed in ipairs(redis.call('HMGET', KEYS[tenant], unpack(requests))) do
    if not owed then ids[#ids + 1] = ARGV[at + 2 * index - 1] end
  end
  at = at + 1 + 2 * count
end
if #ids == 0 then return 0 end
return redis.call('XDEL', KEYS[1], unpack(ids))
