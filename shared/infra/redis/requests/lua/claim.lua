-- A worker takes a request, or takes it over from an attempt that died: the higher attempt number wins and fences off
-- every write of the lower one.
-- KEYS 1 record, 2 body, 3 inflight, 4 account
-- ARGV 1 request id, 2 attempt, 3 lease in ms, 4 a name for this call: it may be sent again after a lost answer
local values = redis.call('HMGET', KEYS[1], 'state', 'fence', 'deadline', 'sent', 'cancel', 'most', 'mostMicro', 'startedAt',
  'owner', 'seq', 'acceptedAt', 'rates', 'prompt')
local state, fence = values[1], tonumber(values[2])
if state ~= 'accepted' and state ~= 'running' then return { 'drop', state or 'missing' } end
if fence >= tonumber(ARGV[2]) and values[9] ~= ARGV[4] then return { 'drop', 'superseded' } end
local body = redis.call('GET', KEYS[2])
if not body then return { 'no_body', state } end
local now = now_ms()
redis.call('HSET', KEYS[1], 'state', 'running', 'fence', ARGV[2], 'owner', ARGV[4], 'startedAt', values[8] or int(now),
  'leased', int(now + tonumber(ARGV[3])))
-- Admission set the sweep's next look to 10 s from then: for a request that starts at once, that is its lease.
if state == 'running' or now - number_of(values[11]) > 1000 then
  redis.call('ZADD', KEYS[3], int(now + tonumber(ARGV[3])), ARGV[1])
end
-- Where there is plenty, the longest answer is held at once: then nobody need watch it grow.
local most, most_micro = number_of(values[6]), number_of(values[7])
local micro, tokens = raise_holds(KEYS[1], KEYS[4], {
  must_micro = 0, ahead_micro = most_micro, over_micro = 0, must_tokens = 0, ahead_tokens = most, over_tokens = 0,
})
return {
  'run', body, number_of(values[3]) - now, number_of(values[4]), values[5] or '', number_of(values[10]), now,
  int(micro), int(tokens), values[12] or '', number_of(values[13]),
}
