-- Returns what an ingress needs to look a request up or to read its stream. A channel makes the ingress a reader.
-- KEYS 1 record, 2 stream, 3 whole answer; ARGV 1 tenant id, 2 channel ('': only looks), 3 reader lease in ms, 4 billed
-- (1 live, 0 test)
-- Returns nil for a request that is unknown, another tenant's or of the other mode.
local values = redis.call('HMGET', KEYS[1], 'tenant', 'state', 'status', 'tier', 'metadata', 'lastSeq', 'acceptedAt', 'startedAt',
  'firstTokenAt', 'finishedAt', 'channels', 'gone', 'model', 'billed')
if values[1] ~= ARGV[1] or values[2] == 'void' or not is_of_mode(values[14], ARGV[4]) then return nil end
if ARGV[2] ~= '' and values[2] ~= 'done' then
  -- `joined`: a call other than the sender's may read the answer (void.lua).
  lease_reader(KEYS[1], values[11] or '', ARGV[2], ARGV[3], 'joined', '1')
end
-- The answer is about to expire: its reader gets more time.
if ARGV[2] ~= '' and values[2] == 'done' and redis.call('PTTL', KEYS[1]) < READ_ON_MS then keep_for_readers(KEYS[2], KEYS[3]) end
for index = 1, 13 do values[index] = values[index] or '' end
return values
