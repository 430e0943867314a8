-- The rpm limit of a request that an operator runs again (replay-request.ts). A refusal of it is not
-- counted; if it is admitted, requeue.lua takes back what was counted.
local REPLAY_LIMIT = 9007199254740991
-- At the ceiling of requests in flight, this many of the oldest are checked, because their ends may have been lost. The
-- same number of the newest shows how much of the allowance is held.
local LOOK_AT = 20

-- Removes the oldest of a tenant's open requests that have ended, or whose records are gone.
local function forget_ended(open, record, id)
  local prefix, ended = string.sub(record, 1, -#id - 1), 0
  for _, other in ipairs(redis.call('ZRANGE', open, 0, LOOK_AT - 1)) do
    local state = redis.call('HGET', prefix .. other, 'state')
    if state ~= 'accepted' and state ~= 'running' then ended = ended + redis.call('ZREM', open, other) end
  end
  return ended
end

-- What a tenant's newest open requests hold of the allowance. Most hold more than they take and will give the rest back.
local function held_by_tests(open, record, id)
  local prefix, sum = string.sub(record, 1, -#id - 1), 0
  for _, other in ipairs(redis.call('ZREVRANGE', open, 0, LOOK_AT - 1)) do
    local values = redis.call('HMGET', prefix .. other, 'billed', 'holdTokens')
    if values[1] == '0' then sum = sum + number_of(values[2]) end
  end
  return sum
end

-- Decides for admit.lua if something could refuse a request. KEYS and ARGV are those of admit.lua, `known` is what it
-- has read. Returns the reply of a refusal, or nil and the number of the tenant's open requests.
local function refusal(known)
  local now, id, is_batch, requests, key, use = known.now, known.id, known.is_batch, known.requests, known.key, known.use
  local estimate, needed, micro, open = known.estimate, known.needed, known.micro, known.open
  local rpm_limit, tenant_rpm, tenant_tpm, open_limit = known.rpm_limit, known.tenant_rpm, known.tenant_tpm, known.open_limit
  local is_replay = rpm_limit >= REPLAY_LIMIT

  local function reply(verdict, retry_ms, estimated, place)
    return {
      verdict, requests, place ~= nil and MINUTE_MS or reset_of(KEYS[2], now), key.tokens,
      reset_of_window(key, now), math.ceil(retry_ms or 0), estimated or 0, place or 0, now,
    }
  end

  -- The call was repeated after its reply was lost: the request is admitted and a worker may have it, or it was voided.
  -- Without a channel nobody waits for it, so another process admitted it.
  local existing = known.existing
  if existing and existing[1] then
    local is_admitted = existing[1] == 'accepted' or known.channel ~= '' and existing[1] ~= 'void'
    return reply(is_admitted and 'admitted' or 'void', 0, number_of(existing[2]), number_of(existing[3]))
  end
  -- A leader that was cut off may bring lines that its successor has sent or ended.
  if known.lease_key
    and (redis.call('GET', known.lease_key) ~= known.leader or redis.call('EXISTS', known.closed_key) == 1) then
    return reply('void')
  end
  if known.key_flag then return reply(known.key_flag == '1' and 'revoked' or 'changed') end
  -- A flag other than 1 is the mark of a tenant's move to another shard (mark-move.lua): this shard admits nothing.
  if known.tenant_flag and known.tenant_flag ~= '1' then
    local elsewhere = reply('elsewhere')
    elsewhere[10] = known.tenant_flag
    return elsewhere
  end

  local function reply_counted(name, retry_ms)
    if not is_batch and not is_replay then
      log_request(KEYS[2], id, now)
      requests = requests + 1
      count_now(use, 1, 0)
      redis.call('HSET', KEYS[4], 'w', use.entries)
    end
    return reply(name, retry_ms)
  end

  local is_tenant_rpm_full = tenant_rpm >= 0 and not is_batch and use.requests >= tenant_rpm
  local function wait_for_tenant_rpm()
    return wait_for_window(use, 'requests', tenant_rpm - 1, now)
  end

  local function reply_rpm()
    return reply('rpm', wait_for_place(KEYS[2], rpm_limit, now))
  end

  -- Requests of a suspended tenant are counted too, so that they are limited.
  if known.tenant_flag then
    if requests >= rpm_limit and not is_batch then return reply_rpm() end
    if is_tenant_rpm_full then return reply('tenant_rpm', wait_for_tenant_rpm()) end
    return reply_counted('suspended')
  end

  -- A second call with the same Idempotency-Key, or a client's own retry, joins the first call's request. It counts as a
  -- request and takes nothing else.
  local prefix = string.sub(KEYS[1], 1, -#id - 1)
  local unread = known.retries and find_unread(known.retries, prefix, now)
  if known.joined or unread then
    if requests >= rpm_limit then return reply_rpm() end
    if is_tenant_rpm_full then return reply('tenant_rpm', wait_for_tenant_rpm()) end
    local joined = reply_counted('joined')
    joined[10] = known.joined or unread .. ' ' .. known.fingerprint
    -- From here on it has a reader, so another retry joins another request.
    if unread then
      local record = prefix .. unread
      lease_reader(record, redis.call('HGET', record, 'channels') or '', known.channel, READER_LEASE_MS, 'joined', '1')
    end
    return joined
  end

  -- All windows must pass, so the longest wait counts.
  local verdict, retry = nil, 0
  local function refuse(name, wait)
    if wait > retry then verdict, retry = name, wait end
  end
  if requests >= rpm_limit and not is_batch then refuse('rpm', wait_for_place(KEYS[2], rpm_limit, now)) end
  if known.throttled and known.throttled >= known.throttle_limit then
    refuse('throttle', wait_for_place(known.throttle_log, known.throttle_limit, now))
  end
  local day = known.day
  if day and day.total >= known.daily_limit then refuse('daily', wait_for_day(day, known.daily_limit, now)) end
  if key.tokens > 0 and key.tokens + estimate > known.tpm_limit then
    refuse('tpm', wait_for_window(key, 'tokens', math.max(0, known.tpm_limit - estimate), now))
  end
  if is_tenant_rpm_full then refuse('tenant_rpm', wait_for_tenant_rpm()) end
  if tenant_tpm >= 0 and use.tokens > 0 and use.tokens + estimate > tenant_tpm then
    refuse('tenant_tpm', wait_for_window(use, 'tokens', math.max(0, tenant_tpm - estimate), now))
  end
  if known.is_unpaid_full then refuse('unpaid', HOUR_MS - now % HOUR_MS) end
  -- A running request ends and gives its hold back within about one recent duration; the first of many ends sooner.
  local duration = number_of(redis.call('HGET', KEYS[4], 'duration'))
  local function soon_ms(count)
    return math.min(30000, math.max(1000, duration / math.max(1, count)))
  end
  if not is_batch and (not known.is_open_known or open >= known.share or open_limit >= 0 and open >= open_limit) then
    open = redis.call('ZCARD', KEYS[10])
    if open_limit >= 0 and open >= open_limit then open = open - forget_ended(KEYS[10], KEYS[1], id) end
    if open_limit >= 0 and open >= open_limit then refuse('max_in_flight', soon_ms(open)) end
  end
  local left, used, balance, held = known.left, known.used, known.balance, known.held
  if not known.billed and (left <= 0 or used > 0 and left < needed) then
    if left + held_by_tests(KEYS[10], KEYS[1], id) >= needed then
      refuse('test_tokens_in_flight', soon_ms(1))
    else
      refuse('test_tokens', 86400000 - now % 86400000)
    end
  end
  if verdict then return reply(verdict, retry, estimate) end

  if known.billed then
    if not balance then return reply('load') end
    if balance <= 0 then return reply_counted('credits') end
    if held > 0 and balance - held < micro then return reply_counted('credits_in_flight', soon_ms(1)) end
    if left and left <= 0 then return reply_counted('budget') end
    if left and used > 0 and left - used < needed then return reply_counted('budget_in_flight', soon_ms(1)) end
  end

  local function reply_full(name, hash, whose)
    if is_batch or is_replay then return reply(name, 1000) end
    return reply_counted(name, retry_estimate_ms(hash, whose, now))
  end

  if not is_batch and open >= known.share and open - taken_of(KEYS[10], KEYS[11], open) >= known.share then
    return reply_full('lane_share', KEYS[4], 'own')
  end
  if known.waiting >= known.lane_limit then
    return reply_full('lane', tag_of(KEYS[7]) .. 'lane:' .. known.lane, 'lane')
  end
  return nil, open
end
