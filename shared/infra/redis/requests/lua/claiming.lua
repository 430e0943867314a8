-- Takes a request for an attempt, or takes it over from one that died: the higher attempt number wins and fences off
-- every write of the lower one. `owner` names this claim; `rows` has what the tenants of a call owe (owed_in), and is
-- written when all is claimed. `account` begins the names of accounts. Returns the tenant, too, where it is claimed.
local NOTHING = { micro = 0, tokens = 0 }

local function claim_request(record, body_key, inflight, account, id, attempt, lease_ms, owner, now, rows)
  local values = redis.call('HMGET', record, 'state', 'fence', 'deadline', 'sent', 'cancel', 'most', 'mostMicro', 'startedAt',
    'owner', 'seq', 'acceptedAt', 'rates', 'prompt', 'hold', 'holdTokens', 'month', 'billed', 'allowance', 'limit', 'tenant')
  local state, fence = values[1], tonumber(values[2])
  if state ~= 'accepted' and state ~= 'running' then return { 'drop', state or 'missing' } end
  if fence >= tonumber(attempt) and values[9] ~= owner then return { 'drop', 'superseded' } end
  local body = redis.call('GET', body_key)
  if not body then return { 'no_body', state } end
  local leased = int(now + lease_ms)
  -- Where there is plenty, the longest answer is held at once: then nobody need watch it grow.
  local micro, tokens, limit = number_of(values[14]), number_of(values[15]), tonumber(values[19])
  local hold_micro, hold_tokens = micro, tokens
  local ahead = { micro = number_of(values[7]), tokens = number_of(values[6]) }
  if values[17] == '1' then
    local owed = owed_in(rows, account .. values[20], values[16])
    hold_micro, hold_tokens = more_held(owed, micro, tokens, limit, NOTHING, ahead, NOTHING)
  else
    hold_tokens = more_allowed(values[18], tokens, limit, NOTHING, ahead, NOTHING)
  end
  redis.call('HSET', record, 'state', 'running', 'fence', attempt, 'owner', owner, 'startedAt', values[8] or int(now),
    'leased', leased, 'hold', int(hold_micro), 'holdTokens', int(hold_tokens))
  -- Admission set the sweep's next look to 10 s from then: for a request that starts at once, that is its lease.
  if state == 'running' or now - number_of(values[11]) > 1000 then redis.call('ZADD', inflight, leased, id) end
  return {
    'run', body, number_of(values[3]) - now, number_of(values[4]), values[5] or '', number_of(values[10]), now,
    values[17] == '1' and hold_micro or -1, (limit or values[17] ~= '1') and hold_tokens or -1, values[12] or '',
    number_of(values[13]),
  }, values[20]
end
