-- Deletes keys of a tenant that is not served from this shard.
-- KEYS 1 mark, then the keys; ARGV 1 mark that must be there, 2 how long they stay in ms (0 not at all)
-- Returns 1, or 0 if the mark is another one.
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
for index = 2, #KEYS do
  if ARGV[2] == '0' then
    redis.call('UNLINK', KEYS[index])
  else
    redis.call('PEXPIRE', KEYS[index], ARGV[2], 'LT')
  end
end
return 1
