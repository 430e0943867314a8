local NOTHING = { micro = 0, tokens = 0 }

-- What a request may take at most. Records of an earlier version have it beside the rates.
local function most_of(record, rates)
  local tokens, micro = string.match(rates or '', ' (%d+) (%d+)$')
  if not tokens then tokens, micro = unpack(redis.call('HMGET', record, 'most', 'mostMicro')) end
  return { micro = number_of(micro), tokens = number_of(tokens) }
end

-- Takes a request for an attempt, or takes it over from one that died: the higher attempt number wins and fences off
-- every write of the lower one. `owner` names this claim; `rows` has what the tenants of a call owe (owed_in), and is
-- written when all is claimed. `account` begins the names of accounts. Returns the tenant and the time of acceptance, too, where
-- it is claimed.
local function claim_request(record, body_key, inflight, account, id, attempt, lease_ms, owner, now, rows)
  local values = redis.call('HMGET', record, 'state', 'fence', 'deadline', 'cancel', 'seq', 'acceptedAt', 'rates', 'hold',
    'holdTokens', 'month', 'billed', 'tenant', 'limit', 'long')
  local state, fence = values[1], tonumber(values[2])
  if state ~= 'accepted' and state ~= 'running' then return { 'drop', state or 'missing' } end
  -- Nobody has had a request before its first attempt. It may be cancelled all the same: while a worker had it that has put
  -- it back.
  local before = (state == 'running' or fence > 0) and redis.call('HMGET', record, 'owner', 'startedAt', 'prompt', 'sent') or {}
  if fence >= tonumber(attempt) and before[1] ~= owner then return { 'drop', 'superseded' } end
  -- Whoever claims reads a long body past this script, which would hash and copy it.
  local body = values[14] and (redis.call('EXISTS', body_key) == 1 and '') or not values[14] and redis.call('GET', body_key)
  if not body then return { 'no_body', state } end
  local leased = int(now + lease_ms)
  -- Where there is plenty, the longest answer is held at once: then nobody need watch it grow.
  local micro, tokens, limit = number_of(values[8]), number_of(values[9]), tonumber(values[13])
  local hold_micro, hold_tokens, ahead = micro, tokens, most_of(record, values[7])
  if values[11] == '1' then
    local owed = owed_in(rows, account .. values[12], values[10])
    hold_micro, hold_tokens = more_held(owed, micro, tokens, limit, NOTHING, ahead, NOTHING)
  else
    hold_tokens = more_allowed(redis.call('HGET', record, 'allowance'), tokens, limit, NOTHING, ahead, NOTHING)
  end
  redis.call('HSET', record, 'state', 'running', 'fence', attempt, 'owner', owner, 'startedAt', before[2] or int(now),
    'leased', leased, 'hold', int(hold_micro), 'holdTokens', int(hold_tokens))
  -- Admission set the sweep's next look to 10 s from then: for a request that starts at once, that is its lease.
  if state == 'running' or now - number_of(values[6]) > 1000 then redis.call('ZADD', inflight, leased, id) end
  return {
    'run', body, number_of(values[3]) - now, number_of(before[4]), values[4] or '', number_of(values[5]), now,
    values[11] == '1' and hold_micro or -1, (limit or values[11] ~= '1') and hold_tokens or -1, values[7] or '',
    number_of(before[3]),
  }, values[12], values[6]
end
