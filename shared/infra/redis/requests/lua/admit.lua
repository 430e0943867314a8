-- Admission of one chat request, whole or not at all (docs/architecture/facts.md section 3): a 429 takes nothing, a 402 or 503 only
-- the request count. With a body the request is in line from then on; without one enqueue.lua puts it there.
-- KEYS  1 record, 2 key rpm log, 3 throttle log, 4 token log, 5 token weights, 6 day counters, 7 account,
--       8 test allowance, 9 blocked key, 10 blocked tenant, 11 inflight, 12 waiting list, 13 mean completion,
--       14 lane statistics, 15 idempotency record (the record where there is none),
--       16 requests of the entity (the record where there is none),
--       17 lease of those who send lines, 18 mark of a batch that is being ended (the record where it is no line),
--       19 what the tenant's requests take together, 20 the tenant's open requests, 21 line, 22 job, 23 marker,
--       24 settings of the queue, 25 body, 26 when callers of the tenant were told to come back to a full line,
--       27 the places that are kept for callers, 28 when those of the tenant were told so because of its share
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
--       31 body ('' it comes later), 32 lifetime of the body in ms, 33 name of the job, 34 its data, 35 its options
local MEAN_UNKNOWN = 500
local ENQUEUE_GRACE_MS = 10000
local READER_LEASE_MS = 15000
local IDEMPOTENCY_MS = 86400000
-- At the ceiling of requests in flight so many of the oldest are looked at, in case some have left without a word.
local LOOK_AT = 20

-- The order of acceptance is time in microseconds: it survives a Redis that comes back empty, as a counter would not.
local seq = now_us()
local now = math.floor(seq / 1000)
local id, billed, is_batch = ARGV[1], ARGV[10] == '1', ARGV[23] == 'batch'
local rpm_limit, tpm_limit = tonumber(ARGV[2]), tonumber(ARGV[4])
local requests = count_of(KEYS[2], now)
local used = tokens_used(KEYS[4], KEYS[5], now)
local life = tonumber(ARGV[18])

local function reply(verdict, retry_ms, estimate, place)
  -- What was just admitted is the newest member of both windows.
  local is_new = place ~= nil
  return {
    verdict, requests, is_new and MINUTE_MS or reset_of(KEYS[2], now), used, is_new and MINUTE_MS or reset_of(KEYS[4], now),
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

local existing = redis.call('HMGET', KEYS[1], 'state', 'holdTokens', 'seq')
-- Sent again after a lost answer: it is admitted already, or was taken back meanwhile.
if existing[1] then
  return reply(existing[1] == 'accepted' and 'admitted' or 'void', 0, number_of(existing[2]), number_of(existing[3]))
end
-- A leader that was cut off may come with lines that the next one has sent or ended: they are not its own any more.
if ARGV[25] ~= '' and (redis.call('GET', KEYS[17]) ~= ARGV[25] or redis.call('EXISTS', KEYS[18]) == 1) then
  return reply('void')
end
local is_blocked = redis.call('EXISTS', KEYS[9], KEYS[10]) > 0
if is_blocked and redis.call('EXISTS', KEYS[9]) == 1 then return reply('revoked') end
-- The flag of a tenant that is moved to another shard is a mark (mark-move.lua): nobody is admitted here any more.
local flag = is_blocked and redis.call('GET', KEYS[10])
if flag and flag ~= '1' then
  local elsewhere = reply('elsewhere')
  elsewhere[10] = flag
  return elsewhere
end

local use = read_use(KEYS[19], ARGV[23], now)
local tenant_rpm, tenant_tpm, open_limit = tonumber(ARGV[27]), tonumber(ARGV[28]), tonumber(ARGV[29])

local function reply_counted(name, retry_ms)
  if not is_batch then
    log_request(KEYS[2], id, now)
    requests = requests + 1
    write_use(use, 0, use.finish, use.owed, life)
  end
  return reply(name, retry_ms)
end

local function is_tenant_rpm_full()
  return tenant_rpm >= 0 and not is_batch and use.requests >= tenant_rpm
end

local function wait_for_tenant_rpm()
  return wait_for_use(use, 'r', use.requests, tenant_rpm - 1, now)
end

local function reply_rpm()
  return reply('rpm', wait_for_place(KEYS[2], requests, rpm_limit, now))
end

-- Every request of a valid key counts, so that those of a suspended tenant are limited, too.
if is_blocked then
  if requests >= rpm_limit and not is_batch then return reply_rpm() end
  if is_tenant_rpm_full() then return reply('tenant_rpm', wait_for_tenant_rpm()) end
  return reply_counted('suspended')
end

-- A second call with the same Idempotency-Key joins the first one's request: it takes one of the rpm and nothing else.
if ARGV[22] ~= '' then
  local first = redis.call('GET', KEYS[15])
  if first then
    if requests >= rpm_limit then return reply_rpm() end
    if is_tenant_rpm_full() then return reply('tenant_rpm', wait_for_tenant_rpm()) end
    local joined = reply_counted('joined')
    joined[10] = first
    return joined
  end
end

local mean = tonumber(redis.call('GET', KEYS[13])) or MEAN_UNKNOWN
local prompt, completion = tonumber(ARGV[6]), math.min(tonumber(ARGV[7]), math.ceil(mean))
local estimate = prompt + completion
local micro = prompt * tonumber(ARGV[8]) + completion * tonumber(ARGV[9])

-- All windows must pass, so the caller waits for the slowest of them.
local verdict, retry = nil, 0
local function refuse(name, wait)
  if wait > retry then verdict, retry = name, wait end
end
if requests >= rpm_limit and not is_batch then refuse('rpm', wait_for_place(KEYS[2], requests, rpm_limit, now)) end
-- A throttle that is no tighter than the rpm can never be the one that refuses, so it is not even counted.
local throttle_limit = tonumber(ARGV[3])
local is_throttled = throttle_limit < rpm_limit and not is_batch
if is_throttled then
  local throttled = count_of(KEYS[3], now)
  if throttled >= throttle_limit then refuse('throttle', wait_for_place(KEYS[3], throttled, throttle_limit, now)) end
end
local daily_limit = tonumber(ARGV[5])
if daily_limit > 0 then
  local today = day_count(KEYS[6], now)
  if today >= daily_limit then refuse('daily', wait_for_day(KEYS[6], today, daily_limit, now)) end
end
if used > 0 and used + estimate > tpm_limit then
  refuse('tpm', wait_for_tokens(KEYS[4], KEYS[5], used, estimate, tpm_limit, now))
end
if is_tenant_rpm_full() then refuse('tenant_rpm', wait_for_tenant_rpm()) end
if tenant_tpm >= 0 and use.tokens > 0 and use.tokens + estimate > tenant_tpm then
  refuse('tenant_tpm', wait_for_use(use, 't', use.tokens, math.max(0, tenant_tpm - estimate), now))
end
local open = 0
if not is_batch then
  open = redis.call('ZCARD', KEYS[20])
  if open_limit >= 0 and open >= open_limit then open = open - forget_ended(KEYS[20], KEYS[1]) end
  if open_limit >= 0 and open >= open_limit then
    refuse('max_in_flight', soon_ms(redis.call('HGET', KEYS[7], 'duration'), open))
  end
end
-- What is taken of budget or allowance; the one request that a small rest always admits takes what there is.
local reserve = estimate
if not billed then
  local allowance_used = number_of(redis.call('GET', KEYS[8]))
  local left = tonumber(ARGV[11]) - allowance_used
  if left <= 0 or (allowance_used > 0 and left < estimate) then refuse('test_tokens', 86400000 - now % 86400000) end
  reserve = math.min(reserve, left)
end
if verdict then return reply(verdict, retry, estimate) end

local month = ARGV[12]
local account
if billed then
  account = redis.call('HMGET', KEYS[7], 'book', 'pend', 'held', 'bt:' .. month, 'pt:' .. month, 'ht:' .. month, 'duration')
  if not account[1] then return reply('load') end
  -- In-flight requests give their holds back as they end: about one recent duration from now.
  local soon = math.min(30000, math.max(1000, number_of(account[7])))
  local balance, held = number_of(account[1]) - number_of(account[2]), number_of(account[3])
  if balance <= 0 then return reply_counted('credits') end
  if held > 0 and balance - held < micro then return reply_counted('credits_in_flight', soon) end
  -- The one request that a small balance always admits holds what there is: more would let it spend more.
  micro = math.min(micro, balance)
  if ARGV[11] ~= '' then
    local left, reserved = tonumber(ARGV[11]) - number_of(account[4]) - number_of(account[5]), number_of(account[6])
    if left <= 0 then return reply_counted('budget') end
    if reserved > 0 and left - reserved < estimate then return reply_counted('budget_in_flight', soon) end
    reserve = math.min(reserve, left)
  end
end

local waiting = redis.call('LLEN', KEYS[12]) + redis.call('ZCARD', KEYS[21])
local lane_limit, share = tonumber(ARGV[13]), tonumber(ARGV[30])
if not is_batch and open >= share then
  local own = open - taken_of(KEYS[20], KEYS[21], open)
  if own >= share and not is_expected(KEYS[28], KEYS[28], own, share, now) then
    return reply_counted('lane_share', promise_place(KEYS[28], KEYS[28], KEYS[19], 'own', id, now))
  end
end
if is_batch and waiting >= lane_limit then return reply('lane', 1000) end
local kept = not is_batch and waiting >= lane_limit / 2 and kept_places(KEYS[27], now) or 0
if not is_batch and waiting + kept >= lane_limit
  and not is_expected(KEYS[26], KEYS[27], waiting, lane_limit, now) then
  return reply_counted('lane', promise_place(KEYS[26], KEYS[27], KEYS[14], 'lane', id, now))
end

if not is_batch then log_request(KEYS[2], id, now) end
if is_throttled then log_request(KEYS[3], id, now) end
if daily_limit > 0 then log_day(KEYS[6], now) end
log_tokens(KEYS[4], KEYS[5], id, used, estimate, now)
if billed then
  redis.call('HSET', KEYS[7], 'held', int(number_of(account[3]) + micro), 'ht:' .. month, int(number_of(account[6]) + reserve))
else
  use_allowance(KEYS[8], reserve)
  redis.call('HSET', KEYS[1], 'allowance', KEYS[8])
end
requests, used = requests + (is_batch and 0 or 1), used + estimate
local start, is_first = start_tag(KEYS[21], use.finish, now)
-- Where nobody waits there is nobody to be fair to: nothing is owed any more.
local work = TURN_TOKENS + estimate + (is_first and 0 or use.owed)
local charged = math.max(1, work)
local turn = tag_text(start)
write_use(use, estimate, tag_text(start + charged / tonumber(ARGV[26])), work - charged, life, is_batch)
if not is_batch then redis.call('ZADD', KEYS[20], turn, id) end
redis.call('HSET', KEYS[1], 'state', 'accepted', 'fence', 0, 'seq', int(seq), 'tenant', ARGV[16], 'key', ARGV[17],
  'billed', ARGV[10], 'hold', int(micro), 'holdTokens', int(reserve), 'month', month, 'sent', 0,
  'deadline', int(now + tonumber(ARGV[14])), 'acceptedAt', int(now), 'channels', ARGV[15], 'life', ARGV[18],
  'turn', turn, 'estimate', int(estimate),
  'most', int(tonumber(ARGV[24]) + tonumber(ARGV[7])),
  'mostMicro', int(tonumber(ARGV[24]) * tonumber(ARGV[8]) + tonumber(ARGV[7]) * tonumber(ARGV[9])),
  'rates', ARGV[8] .. ' ' .. ARGV[9], 'limit', ARGV[11],
  'tier', ARGV[19], 'alone', ARGV[21], 'reader:' .. ARGV[15], int(now + READER_LEASE_MS))
if ARGV[20] ~= '' then redis.call('HSET', KEYS[1], 'metadata', ARGV[20]) end
if is_batch then redis.call('HSET', KEYS[1], 'lane', ARGV[23]) end
if ARGV[22] ~= '' then
  redis.call('HSET', KEYS[1], 'idempotency', KEYS[15])
  redis.call('SET', KEYS[15], id .. ' ' .. ARGV[22], 'PX', IDEMPOTENCY_MS)
end
-- By the time at which the request has surely left nothing behind: what is kept for a day may stay here for so long.
if KEYS[16] ~= KEYS[1] then
  redis.call('ZREMRANGEBYSCORE', KEYS[16], '-inf', int(now))
  redis.call('ZADD', KEYS[16], int(now + life + (ARGV[21] == 'finish' and IDEMPOTENCY_MS or 0)), id)
  redis.call('PEXPIRE', KEYS[16], int(life + IDEMPOTENCY_MS))
end
redis.call('ZADD', KEYS[11], int(now + ENQUEUE_GRACE_MS), id)
if ARGV[31] ~= '' then
  store_body(KEYS[25], ARGV[31], int(now), ARGV[32])
  add_job(KEYS[22], KEYS[21], KEYS[23], KEYS[24], id,
    { name = ARGV[33], data = ARGV[34], opts = ARGV[35], timestamp = int(now), tag = turn })
end
return reply('admitted', 0, estimate, seq)
