-- For scripts that end a request before a worker has it: gives back all that it took, and removes its waiting job.
-- The keys of such a script begin with these (acceptedKeys in keyspace.ts).
-- KEYS 1 record, 2 body, 3 inflight, 4 account, 5 what the key's requests take, 6 stream, 7 the tenant's open requests,
-- 8 and 9 the waiting queues, interactive and batch
-- Returns what `endedEarly` in record-store.ts tells of a request that ended without a run.
local function drop_accepted(id)
  local values = redis.call('HMGET', KEYS[1], 'queue', 'acceptedAt', 'estimate', 'tier', 'billed')
  -- The body begins with ids and route; the caller's text stands behind them.
  local route = string.match(redis.call('GETRANGE', KEYS[2], 0, 299), '"endpoint":"([^"]+)"') or values[1] or 'chat'
  free_holds(KEYS[1], KEYS[4])
  correct_tokens(KEYS[5], number_of(values[2]), -number_of(values[3]), now_ms())
  correct_use(KEYS[4], values[1] or 'interactive', number_of(values[2]), -number_of(values[3]), now_ms())
  redis.call('ZREM', KEYS[3], id)
  redis.call('ZREM', KEYS[7], id)
  redis.call('UNLINK', KEYS[2])
  for _, prioritized in ipairs({ KEYS[8], KEYS[9] }) do
    if redis.call('ZREM', prioritized, id) == 1 then redis.call('UNLINK', job_of(prioritized, id)) end
  end
  forget_idempotency(KEYS[1], id)
  return { 'accepted', route, values[4] or '', values[5] or '1', values[2] or '0' }
end
