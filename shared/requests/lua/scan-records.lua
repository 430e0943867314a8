-- Which of the given records are a tenant's, or nobody's. One call checks many: a move looks at all records of a shard.
-- KEYS records; ARGV 1 tenant id
-- Returns their positions.
local own = {}
for index, record in ipairs(KEYS) do
  local tenant = redis.call('HGET', record, 'tenant')
  if not tenant or tenant == ARGV[1] then own[#own + 1] = index end
end
return own
