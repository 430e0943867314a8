-- Brings a key of a moving tenant to its new shard, while the same move keeps that closed: a replaced process is
-- refused. Safe to repeat.
-- KEYS 1 mark, 2 key; ARGV 1 mark that must be there, 2 when the key expires in ms (0 never), 3 DUMP's value,
-- 4 prefix of the keys on the former shard, 5 their prefix here. Returns 1, or 0 if the move is another process's.
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
redis.call('RESTORE', KEYS[2], ARGV[2], ARGV[3], 'REPLACE', 'ABSTTL')
-- A request's record names keys of its shard.
if string.sub(KEYS[2], 1, #ARGV[5] + 2) == ARGV[5] .. 'r:' then
  for _, field in ipairs({ 'idempotency', 'retries', 'allowance' }) do
    local name = redis.call('HGET', KEYS[2], field)
    if name and string.sub(name, 1, #ARGV[4]) == ARGV[4] then
      redis.call('HSET', KEYS[2], field, ARGV[5] .. string.sub(name, #ARGV[4] + 1))
    end
  end
end
return 1
