-- Compares and sets a moving tenant's mark: `moving <token>` during the move, `moved <shard>` on its former shard. It
-- replaces a suspended tenant's flag, which admission reads anyway.
-- KEYS 1 flag; ARGV 1 mark that must be there ('' any), 2 new mark ('' none), 3 its lifetime in ms (0 endless)
-- Returns 1 if that was done.
if ARGV[1] ~= '' and redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
if ARGV[2] == '' then
  redis.call('DEL', KEYS[1])
elseif ARGV[3] == '0' then
  redis.call('SET', KEYS[1], ARGV[2])
else
  redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
end
return 1
