-- Takes a request off the list of those that a retry may join.
local function forget_retries(list, id)
  local rest = {}
  for other in string.gmatch(redis.call('GET', list) or '', '%S+') do
    if other ~= id then rest[#rest + 1] = other end
  end
  if rest[1] then
    redis.call('SET', list, table.concat(rest, ' '), 'KEEPTTL')
  else
    redis.call('DEL', list)
  end
end

-- Frees the Idempotency-Key of a request that ended without an answer, so that a retry runs, and forgets of which call it
-- was a try.
local function forget_idempotency(record, id)
  local key, retries = unpack(redis.call('HMGET', record, 'idempotency', 'retries'))
  if retries then forget_retries(retries, id) end
  if not key then return end
  local first = redis.call('GET', key)
  if first and string.sub(first, 1, #id) == id then redis.call('DEL', key) end
end
