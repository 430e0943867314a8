-- Removes entries whose charges are booked from the outbox for good. An entry whose charge is still pending stays:
-- Redis has come back without the balance that contains it. A full Redis refuses even this in a transaction, but not in a
-- script.
-- KEYS 1 outbox, then the pending charges of each tenant in turn
-- ARGV for each tenant how many entries it has, and the ids of each entry and of its request in turn
-- Returns how many were removed.
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
