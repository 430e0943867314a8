-- Makes a request's end expire, unless the request has been run again since (reopen.lua): an open one's record may not.
-- Safe to repeat.
-- KEYS 1 record, 2 stream, 3 whole answer; ARGV 1 time of the end ('': not in its record), 2 lifetime in ms. Returns 1,
-- or 0 if the end is another one.
local state, finished_at = unpack(redis.call('HMGET', KEYS[1], 'state', 'finishedAt'))
if state ~= 'done' or (finished_at or '') ~= ARGV[1] then return 0 end
for _, key in ipairs(KEYS) do redis.call('PEXPIRE', key, ARGV[2]) end
return 1
