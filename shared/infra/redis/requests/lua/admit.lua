-- Admission of one chat request, whole or not at all (docs/architecture/facts.md section 3): a 429 takes nothing, a 402 or 503 only
-- the request count. With a body the request is in line from then on; without one enqueue.lua puts it there.
-- Each command costs more than what it does, so every value is read with its neighbours and written with them
-- (docs/decisions/0063-an-admission-in-few-commands.md).
-- KEYS  1 record, 2 key rpm log, 3 what the key's requests take, 4 account, and what the tenant's requests take together,
--       5 blocked key, 6 blocked tenant, 7 inflight, 8 waiting list, 9 mean completion, 10 lane statistics,
--       11 the tenant's open requests, 12 line, 13 job, 14 marker, 15 settings of the queue, 16 body,
--       17 when callers of the tenant were told to come back to a full line, 18 the places that are kept for callers,
--       19 when those of the tenant were told so because of its share, 20 the places of its share that are kept for them,
--       then those that the values below ask for
-- ARGV  1 request id, 2 rpm limit, 3 throttle limit, 4 tpm limit, 5 daily limit (0 none), 6 prompt tokens,
--       7 max tokens, 8 prompt rate, 9 completion rate (micro-credits a token), 10 billed (1 live, 0 test),
--       11 budget limit ('' none) or test allowance limit, 12 month, 13 lane limit, 14 deadline in ms from now,
--       15 channel of the ingress, 16 tenant id, 17 key id, 18 lifetime of the record in ms,
--       19 tier, 20 metadata as JSON ('' none), 21 what happens without a reader (cancel, finish),
--       22 fingerprint of the body ('' without an Idempotency-Key),
--       23 lane: a line of a batch takes nothing of the limits on requests a minute
--          (docs/spec/contract.md section 3, Batches),
--       24 prompt tokens at most, as the worker will count them,
--       25 the process that sends the line ('' it is no line),
--       26 weight of the tenant's turns, 27 its requests and 28 tokens a minute and 29 requests in flight at most
--          (-1 none), 30 its requests in line at most,
--       31 body ('' it comes later), 32 lifetime of the body in ms, 33 name of the job, 34 its data, 35 its options,
--       36 whether it is an entity's (1), 37 how long its end is kept in ms ('' the service's own time),
--       38 until when its sender waits for the answer, by this server's clock ('' unknown)
-- Further keys, in this order: throttle log (the throttle is tighter than the rpm), day counters (a daily limit), test
-- allowance (not billed), idempotency record (a fingerprint), requests of the entity, lease of those who send lines and
-- mark of a batch that is being ended (a line)
local MEAN_UNKNOWN = 500
local ENQUEUE_GRACE_MS = 10000
local READER_LEASE_MS = 15000
local IDEMPOTENCY_MS = 86400000
-- The limit of an operator who runs a request again (replay-request.ts): its refusal is counted nowhere and promised no
-- place, and requeue.lua takes back what its admission has counted.
local UNLIMITED = 9007199254740991
-- At the ceiling of requests in flight so many of the oldest are looked at, in case some have left without a word.
local LOOK_AT = 20

-- The order of acceptance is time in microseconds: it survives a Redis that comes back empty, as a counter would not.
local seq = now_us()
local now = math.floor(seq / 1000)
-- Its sender has given up meanwhile: nobody waits for what would run here.
if ARGV[38] ~= '' and now > tonumber(ARGV[38]) then return { 'late', now } end
local id, billed, is_batch, lane = ARGV[1], ARGV[10] == '1', ARGV[23] == 'batch', ARGV[23]
local rpm_limit, throttle_limit, tpm_limit = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local life, is_replay = tonumber(ARGV[18]), rpm_limit >= UNLIMITED
-- A throttle that is no tighter than the rpm can never be the one that refuses, so it is not even counted.
local is_throttled = throttle_limit < rpm_limit and not is_batch
local next_key = 21
-- The next key, where the values ask for one.
local function key_if(is_asked)
  if not is_asked then return nil end
  next_key = next_key + 1
  return KEYS[next_key - 1]
end
local throttle_log = key_if(is_throttled)
local day_key = key_if(ARGV[5] ~= '0')
local allowance_key = key_if(not billed)
local idempotency_key = key_if(ARGV[22] ~= '')
local entity_key = key_if(ARGV[36] == '1')
local lease_key = key_if(ARGV[25] ~= '')
local closed_key = key_if(ARGV[25] ~= '')

local requests = count_of(KEYS[2], now)
-- Beside its windows the key has when these and its logs were last given longer to live.
local key_values = redis.call('HMGET', KEYS[3], 'w', 'r', 't', 'kept', KEYS[2], throttle_log or KEYS[2])
local key = to_use(key_values[1], key_values[2], key_values[3], now)

local function reply(verdict, retry_ms, estimate, place)
  return {
    -- What was just admitted is the newest member of the log.
    verdict, requests, place ~= nil and MINUTE_MS or reset_of(KEYS[2], now), key.tokens, reset_of_use(key, now),
    math.ceil(retry_ms or 0), estimate or 0, place or 0, now,
  }
end

-- In-flight requests end within about one recent duration; of many, one does so sooner.
local function soon_ms(duration, open)
  return math.min(30000, math.max(1000, number_of(duration) / math.max(1, open)))
end

-- Takes the oldest of a tenant's open requests out whose records say that they have ended, or are gone.
local function forget_ended(open, record)
  local prefix, ended = string.sub(record, 1, -#id - 1), 0
  for _, other in ipairs(redis.call('ZRANGE', open, 0, LOOK_AT - 1)) do
    local state = redis.call('HGET', prefix .. other, 'state')
    if state ~= 'accepted' and state ~= 'running' then ended = ended + redis.call('ZREM', open, other) end
  end
  return ended
end

-- Mostly there is none of these: no record of this request, nothing before the line, nothing in it.
local first, waiting = {}, 0
local found = redis.call('EXISTS', KEYS[1], KEYS[8], KEYS[12])
if found > 0 then
  first = redis.call('ZRANGE', KEYS[12], '0', '0', 'WITHSCORES')
  if first[1] then found, waiting = found - 1, redis.call('ZCARD', KEYS[12]) end
end
if found > 0 then
  local existing = redis.call('HMGET', KEYS[1], 'state', 'holdTokens', 'seq')
  -- Sent again after a lost answer: it is admitted already, or was taken back meanwhile.
  if existing[1] then
    return reply(existing[1] == 'accepted' and 'admitted' or 'void', 0, number_of(existing[2]), number_of(existing[3]))
  end
  waiting = waiting + redis.call('LLEN', KEYS[8])
end
-- A leader that was cut off may come with lines that the next one has sent or ended: they are not its own any more.
if lease_key and (redis.call('GET', lease_key) ~= ARGV[25] or redis.call('EXISTS', closed_key) == 1) then
  return reply('void')
end
local strings = redis.call('MGET', KEYS[5], KEYS[6], KEYS[9], idempotency_key or KEYS[1])
if strings[1] then return reply('revoked') end
-- The flag of a tenant that is moved to another shard is a mark (mark-move.lua): nobody is admitted here any more.
if strings[2] and strings[2] ~= '1' then
  local elsewhere = reply('elsewhere')
  elsewhere[10] = strings[2]
  return elsewhere
end

local month = ARGV[12]
local account = redis.call('HMGET', KEYS[4], 'w', 'r', 't', 'f:' .. lane, 'o:' .. lane, 'open', 'duration',
  'book', 'pend', 'held', 'bt:' .. month, 'pt:' .. month, 'ht:' .. month, 's:' .. lane, 'weight')
local use = to_use(account[1], account[2], account[3], now)
local tenant_rpm, tenant_tpm, open_limit = tonumber(ARGV[27]), tonumber(ARGV[28]), tonumber(ARGV[29])

local function reply_counted(name, retry_ms)
  if not is_batch and not is_replay then
    log_request(KEYS[2], id, now)
    requests = requests + 1
    count_use(use, 1, 0)
    redis.call('HSET', KEYS[4], 'w', use.entries, 'r', int(use.requests), 't', int(use.tokens))
  end
  return reply(name, retry_ms)
end

local function is_tenant_rpm_full()
  return tenant_rpm >= 0 and not is_batch and use.requests >= tenant_rpm
end

local function wait_for_tenant_rpm()
  return wait_for_use(use, 'requests', tenant_rpm - 1, now)
end

local function reply_rpm()
  return reply('rpm', wait_for_place(KEYS[2], rpm_limit, now))
end

-- Every request of a valid key counts, so that those of a suspended tenant are limited, too.
if strings[2] then
  if requests >= rpm_limit and not is_batch then return reply_rpm() end
  if is_tenant_rpm_full() then return reply('tenant_rpm', wait_for_tenant_rpm()) end
  return reply_counted('suspended')
end

-- A second call with the same Idempotency-Key joins the first one's request: it takes one of the rpm and nothing else.
if idempotency_key and strings[4] then
  if requests >= rpm_limit then return reply_rpm() end
  if is_tenant_rpm_full() then return reply('tenant_rpm', wait_for_tenant_rpm()) end
  local joined = reply_counted('joined')
  joined[10] = strings[4]
  return joined
end

local mean = tonumber(strings[3]) or MEAN_UNKNOWN
local prompt, completion = tonumber(ARGV[6]), math.min(tonumber(ARGV[7]), math.ceil(mean))
local estimate = prompt + completion
local micro = prompt * tonumber(ARGV[8]) + completion * tonumber(ARGV[9])

-- All windows must pass, so the caller waits for the slowest of them.
local verdict, retry = nil, 0
local function refuse(name, wait)
  if wait > retry then verdict, retry = name, wait end
end
if requests >= rpm_limit and not is_batch then refuse('rpm', wait_for_place(KEYS[2], rpm_limit, now)) end
if throttle_log and count_of(throttle_log, now) >= throttle_limit then
  refuse('throttle', wait_for_place(throttle_log, throttle_limit, now))
end
local daily_limit = tonumber(ARGV[5])
local day = day_key and read_day(day_key, now)
if day and day.total >= daily_limit then refuse('daily', wait_for_day(day, daily_limit, now)) end
if key.tokens > 0 and key.tokens + estimate > tpm_limit then
  refuse('tpm', wait_for_use(key, 'tokens', math.max(0, tpm_limit - estimate), now))
end
if is_tenant_rpm_full() then refuse('tenant_rpm', wait_for_tenant_rpm()) end
if tenant_tpm >= 0 and use.tokens > 0 and use.tokens + estimate > tenant_tpm then
  refuse('tenant_tpm', wait_for_use(use, 'tokens', math.max(0, tenant_tpm - estimate), now))
end
-- `open` is how many there were when they were last counted, and all that came since: most of them have left, so it is
-- counted again only where a limit could be reached.
local share = tonumber(ARGV[30])
local open = number_of(account[6])
if not is_batch and (not account[6] or open >= share or open_limit >= 0 and open >= open_limit) then
  open = redis.call('ZCARD', KEYS[11])
  if open_limit >= 0 and open >= open_limit then open = open - forget_ended(KEYS[11], KEYS[1]) end
  if open_limit >= 0 and open >= open_limit then refuse('max_in_flight', soon_ms(account[7], open)) end
end
-- What is taken of budget or allowance; the one request that a small rest always admits takes what there is.
local reserve = estimate
if not billed then
  local allowance_used = number_of(redis.call('GET', allowance_key))
  local left = tonumber(ARGV[11]) - allowance_used
  if left <= 0 or (allowance_used > 0 and left < estimate) then refuse('test_tokens', 86400000 - now % 86400000) end
  reserve = math.min(reserve, left)
end
if verdict then return reply(verdict, retry, estimate) end

local held = number_of(account[10])
if billed then
  if not account[8] then return reply('load') end
  -- In-flight requests give their holds back as they end: about one recent duration from now.
  local soon = math.min(30000, math.max(1000, number_of(account[7])))
  local balance = number_of(account[8]) - number_of(account[9])
  if balance <= 0 then return reply_counted('credits') end
  if held > 0 and balance - held < micro then return reply_counted('credits_in_flight', soon) end
  -- The one request that a small balance always admits holds what there is: more would let it spend more.
  micro = math.min(micro, balance)
  if ARGV[11] ~= '' then
    local left, reserved = tonumber(ARGV[11]) - number_of(account[11]) - number_of(account[12]), number_of(account[13])
    if left <= 0 then return reply_counted('budget') end
    if reserved > 0 and left - reserved < estimate then return reply_counted('budget_in_flight', soon) end
    reserve = math.min(reserve, left)
  end
end

local lane_limit = tonumber(ARGV[13])
-- A replay takes none of the places that callers were promised.
local is_let_in, own_due, lane_due
if not is_batch and open >= share then
  local own = open - taken_of(KEYS[11], KEYS[12], open)
  is_let_in, own_due = find_place(not is_replay and KEYS[19], KEYS[20], own, share, now)
  if not is_let_in then
    if is_replay then return reply('lane_share', 1000) end
    use_promise(KEYS[19], KEYS[20], own_due)
    return reply_counted('lane_share', promise_place(KEYS[19], KEYS[20], KEYS[4], 'own', id, now))
  end
end
if is_batch and waiting >= lane_limit then return reply('lane', 1000) end
if not is_batch then
  is_let_in, lane_due = find_place(not is_replay and KEYS[17], KEYS[18], waiting, lane_limit, now)
  if not is_let_in then
    if is_replay then return reply('lane', 1000) end
    use_promise(KEYS[17], KEYS[18], lane_due)
    return reply_counted('lane', promise_place(KEYS[17], KEYS[18], KEYS[10], 'lane', id, now))
  end
end
use_promise(KEYS[19], KEYS[20], own_due)
use_promise(KEYS[17], KEYS[18], lane_due)

-- All is well: from here on it is written.
local function add(fields, name, value)
  fields[#fields + 1] = name
  fields[#fields + 1] = value
end

count_use(key, 1, estimate)
local key_fields = { 'w', key.entries, 'r', int(key.requests), 't', int(key.tokens) }
local function is_due(since, field)
  if now - number_of(since) < MINUTE_MS then return false end
  add(key_fields, field, int(now))
  return true
end
if not is_batch then
  redis.call('ZADD', KEYS[2], int(now), id)
  requests = requests + 1
  if is_due(key_values[5], KEYS[2]) then keep_log(KEYS[2], now) end
end
if throttle_log then
  redis.call('ZADD', throttle_log, int(now), id)
  if is_due(key_values[6], throttle_log) then keep_log(throttle_log, now) end
end
if day then log_day(day) end
local is_key_due = is_due(key_values[4], 'kept')
redis.call('HSET', KEYS[3], unpack(key_fields))
if is_key_due then redis.call('PEXPIRE', KEYS[3], 3 * MINUTE_MS) end

local start, is_first, follows = start_tag(first, number_of(account[4]), now)
-- Where nobody waits there is nobody to be fair to: nothing is owed any more.
local work = TURN_TOKENS + estimate + (is_first and 0 or number_of(account[5]))
local charged = math.max(1, work)
local turn = tag_text(start)
count_use(use, is_batch and 0 or 1, estimate)
local tenant_fields = {
  'w', use.entries, 'r', int(use.requests), 't', int(use.tokens), 'f:' .. lane,
  tag_text(start + charged / tonumber(ARGV[26])), 'o:' .. lane, int(work - charged),
}
-- A turn that does not follow the tenant's last one begins a row of its own, from which corrections count.
if not follows then
  add(tenant_fields, 'c:' .. lane, int(now))
  add(tenant_fields, 's:' .. lane, '0')
end
if account[15] ~= ARGV[26] then add(tenant_fields, 'weight', ARGV[26]) end
if billed then
  add(tenant_fields, 'held', int(held + micro))
  add(tenant_fields, 'ht:' .. month, int(number_of(account[13]) + reserve))
else
  use_allowance(allowance_key, reserve)
end
if not is_batch then
  add(tenant_fields, 'open', int(open + 1))
  redis.call('ZADD', KEYS[11], int(seq), id)
end
redis.call('HSET', KEYS[4], unpack(tenant_fields))

local record = {
  'state', 'accepted', 'fence', '0', 'seq', int(seq), 'tenant', ARGV[16], 'key', ARGV[17],
  'billed', ARGV[10], 'hold', int(micro), 'holdTokens', int(reserve), 'month', month, 'sent', '0',
  'deadline', int(now + tonumber(ARGV[14])), 'acceptedAt', int(now), 'channels', ARGV[15], 'life', ARGV[18],
  'turn', turn, 'estimate', int(estimate),
  'most', int(tonumber(ARGV[24]) + tonumber(ARGV[7])),
  'mostMicro', int(tonumber(ARGV[24]) * tonumber(ARGV[8]) + tonumber(ARGV[7]) * tonumber(ARGV[9])),
  'rates', ARGV[8] .. ' ' .. ARGV[9],
  'tier', ARGV[19], 'alone', ARGV[21], 'reader:' .. ARGV[15], int(now + READER_LEASE_MS),
}
if ARGV[11] ~= '' then add(record, 'limit', ARGV[11]) end
if allowance_key then add(record, 'allowance', allowance_key) end
if ARGV[20] ~= '' then add(record, 'metadata', ARGV[20]) end
if is_batch then add(record, 'lane', lane) end
if follows and number_of(account[14]) ~= 0 then add(record, 'shift', account[14]) end
if ARGV[37] ~= '' then add(record, 'keep', ARGV[37]) end
if idempotency_key then
  add(record, 'idempotency', idempotency_key)
  redis.call('SET', idempotency_key, id .. ' ' .. ARGV[22] .. ' ' .. ARGV[16], 'PX', IDEMPOTENCY_MS)
end
redis.call('HSET', KEYS[1], unpack(record))
-- By the time at which the request has surely left nothing behind: what is kept for a day may stay here for so long.
if entity_key then
  redis.call('ZREMRANGEBYSCORE', entity_key, '-inf', int(now))
  redis.call('ZADD', entity_key, int(now + life + (ARGV[21] == 'finish' and IDEMPOTENCY_MS or 0)), id)
  redis.call('PEXPIRE', entity_key, int(life + IDEMPOTENCY_MS))
end
redis.call('ZADD', KEYS[7], int(now + ENQUEUE_GRACE_MS), id)
if ARGV[31] ~= '' then
  store_body(KEYS[16], ARGV[31], int(now), ARGV[32])
  add_job(KEYS[13], KEYS[12], KEYS[14], KEYS[15], id,
    { name = ARGV[33], data = ARGV[34], opts = ARGV[35], timestamp = int(now), tag = turn })
end
return reply('admitted', 0, estimate, seq)
