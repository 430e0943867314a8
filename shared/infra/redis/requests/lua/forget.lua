-- @seldom
-- Frees the Idempotency-Key of a request that ended without an answer, so that a retry runs.
local function forget_idempotency(record, id)
  local key = redis.call('HGET', record, 'idempotency')
  if not key then return end
  local first = redis.call('GET', key)
  if first and string.sub(first, 1, #id) == id then redis.call('DEL', key) end
end
