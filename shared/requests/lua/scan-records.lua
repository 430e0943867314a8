-- Returns the positions of records that are a tenant's, or nobody's, many in one call: a move looks at all of a shard.
-- KEYS records; ARGV 1 tenant id
local own = {}
for index, record in ipairs(KEYS) do
  local tenant = redis.call('HGET', record, 'tenant')
  if not tenant or tenant == ARGV[1] then own[#own + 1] = index end
end
return own
