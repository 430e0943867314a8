local NOTHING = { micro = 0, tokens = 0 }

-- A request may take this at most, by its rates.
local function most_of(rates)
  local tokens, micro = string.match(rates or '', ' (%d+) (%d+)$')
  return { micro = number_of(micro), tokens = number_of(tokens) }
end

-- Claims a request for a delivery, or takes it over from a dead one: the higher number (`delivery`, the fence) shuts
-- out writes of the lower one. `owner` names this claim. `call` is shared by a script's claims: `inflight`, `accounts`
-- (how names of accounts begin), `lease_ms`, `now`, `has_body` if the worker has the body, and `holds`, which holds_of
-- fills and the script writes at its end.
-- Returns 'drop' and why; 'no_body' and the state; or 'run', body, ms until the deadline, last event sent, cancel flag,
-- place in the order of acceptance, now, micro-credits and tokens held (-1: not bounded), rates, prompt tokens, and
-- from the record: bound on tokens, what a disconnect means, retention ('': none). A claim also returns its tenant and
-- the time of its acceptance.
local function claim_request(call, id, record, body_key, delivery, owner)
  local state, fence, deadline, cancel, seq, accepted_at, rates, hold_text, hold_tokens, month, billed, tenant, limit,
    on_disconnect, retention = unpack(redis.call('HMGET', record, 'state', 'fence', 'deadline', 'cancel', 'seq', 'acceptedAt',
      'rates', 'hold', 'holdTokens', 'month', 'billed', 'tenant', 'limit', 'onDisconnect', 'retentionMs'))
  if state ~= 'accepted' and state ~= 'running' then return { 'drop', state or 'missing' } end
  fence = tonumber(fence)
  -- Absent before the first delivery, and again after a worker gave the request back; `cancel` may be set by then.
  local known_owner, started_at, prompt, sent
  if state == 'running' or fence > 0 then
    known_owner, started_at, prompt, sent = unpack(redis.call('HMGET', record, 'owner', 'startedAt', 'prompt', 'lastSeq'))
  end
  if fence >= tonumber(delivery) and known_owner ~= owner then return { 'drop', 'superseded' } end
  local body = redis.call('GET', body_key)
  if not body and not call.has_body then return { 'no_body', state } end
  local now, is_billed = call.now, billed == '1'
  local leased = int(now + call.lease_ms)
  -- A rich account's hold covers the longest answer at once, so that no worker need watch the answer grow.
  local micro, tokens, limit_tokens = number_of(hold_text), number_of(hold_tokens), tonumber(limit)
  local hold_micro, preferred = micro, most_of(rates)
  if is_billed then
    local holds = holds_of(call.holds, call.accounts .. tenant, month)
    hold_micro, tokens = raise_hold(holds, micro, tokens, limit_tokens, NOTHING, preferred, NOTHING)
  else
    tokens = more_allowed(redis.call('HGET', record, 'allowance'), tokens, limit_tokens, NOTHING, preferred, NOTHING)
  end
  redis.call('HSET', record, 'state', 'running', 'fence', delivery, 'owner', owner, 'startedAt', started_at or int(now),
    'leased', leased, 'hold', int(hold_micro), 'holdTokens', int(tokens))
  -- Admission set the sweep's next look to 10 s after itself: the lease of a request that starts at once.
  if state == 'running' or now - number_of(accepted_at) > 1000 then redis.call('ZADD', call.inflight, leased, id) end
  return {
    'run', body or '', number_of(deadline) - math.max(now, number_of(accepted_at)), number_of(sent), cancel or '', number_of(seq), now,
    is_billed and hold_micro or -1, (limit_tokens or not is_billed) and tokens or -1, rates or '', number_of(prompt),
    limit or '', on_disconnect or '', retention or '',
  }, tenant, accepted_at
end
