-- Removes the end of a request that failed without text, for admission under the same id. Until then Redis knows
-- nothing of it, so no late end counts. Safe to repeat.
-- KEYS 1 record, 2 stream, 3 whole answer, 4 mark of an end without a record; ARGV 1 tenant id
-- Returns the found state and the last delivery's fence: 'failed' and 'missing' are open now, any other is unchanged.
local values = redis.call('HMGET', KEYS[1], 'state', 'status', 'lastSeq', 'tenant', 'fence')
if values[1] then
  if values[4] ~= ARGV[1] then return { 'foreign', '' } end
  if values[1] ~= 'done' then return { values[1], '' } end
  -- The one event is the error itself: there was no text.
  if values[2] ~= 'failed' or tonumber(values[3]) ~= 1 then return { 'done', '' } end
end
redis.call('UNLINK', KEYS[1], KEYS[2], KEYS[3], KEYS[4])
return { values[1] and 'failed' or 'missing', values[5] or '' }
