-- Takes a request for an attempt, or takes it over from one that died: the higher attempt number wins and fences off
-- every write of the lower one. `owner` names this claim.
local function claim_request(record, body_key, inflight, account, id, attempt, lease_ms, owner, now)
  local values = redis.call('HMGET', record, 'state', 'fence', 'deadline', 'sent', 'cancel', 'most', 'mostMicro', 'startedAt',
    'owner', 'seq', 'acceptedAt', 'rates', 'prompt', unpack(HOLDS))
  local state, fence = values[1], tonumber(values[2])
  if state ~= 'accepted' and state ~= 'running' then return { 'drop', state or 'missing' } end
  if fence >= tonumber(attempt) and values[9] ~= owner then return { 'drop', 'superseded' } end
  local body = redis.call('GET', body_key)
  if not body then return { 'no_body', state } end
  local leased = int(now + tonumber(lease_ms))
  -- Where there is plenty, the longest answer is held at once: then nobody need watch it grow.
  local micro, tokens, hold_micro, hold_tokens = more_held(account, { unpack(values, 14, 13 + #HOLDS) }, {
    must_micro = 0, ahead_micro = number_of(values[7]), over_micro = 0,
    must_tokens = 0, ahead_tokens = number_of(values[6]), over_tokens = 0,
  })
  redis.call('HSET', record, 'state', 'running', 'fence', attempt, 'owner', owner, 'startedAt', values[8] or int(now),
    'leased', leased, 'hold', int(hold_micro or number_of(values[14])),
    'holdTokens', int(hold_tokens or number_of(values[15])))
  -- Admission set the sweep's next look to 10 s from then: for a request that starts at once, that is its lease.
  if state == 'running' or now - number_of(values[11]) > 1000 then redis.call('ZADD', inflight, leased, id) end
  return {
    'run', body, number_of(values[3]) - now, number_of(values[4]), values[5] or '', number_of(values[10]), now,
    int(micro), int(tokens), values[12] or '', number_of(values[13]),
  }
end
