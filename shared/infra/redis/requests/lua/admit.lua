-- Admission of one chat request, whole or not at all (docs/architecture/facts.md section 3): a 429 takes nothing, a 402 or 503 only
-- the request count. With a body the request is in line from then on; without one enqueue.lua puts it there.
-- Each command costs more than what it does, so every value is read with its neighbours and written with them
-- (docs/decisions/0063-an-admission-in-few-commands.md). Where anything could stand in the way refusal.lua looks closer.
-- KEYS  1 record, 2 key rpm log, 3 what the key's requests take, 4 account, and what the tenant's requests take together,
--       5 blocked key, 6 blocked tenant, 7 inflight, 8 waiting list, 9 mean completion, 10 the tenant's open requests,
--       11 line, 12 job, 13 marker, 14 settings of the queue, 15 body, then those that the values below ask for; refusal.lua
--       makes the names of those that only it needs
-- ARGV  1 request id,
--       2 numbers as JSON, which is read faster than an argument each: rpm limit, throttle limit, tpm limit, daily limit
--         (0 none), prompt tokens, max tokens, prompt rate, completion rate (micro-credits a token), lane limit, deadline in ms
--         from now, weight of the tenant's turns, its requests and tokens a minute and requests in flight at most (-1 none),
--         its requests in line at most, whether it is an entity's (1), tokens that it counts in the windows (-1: its estimate),
--       3 short texts, each before a NUL, for the same reason: billed (1 live, 0 test), budget limit ('' none) or test
--         allowance limit, month, channel of the ingress, tenant id, key id, lifetime of the record in ms, tier, what happens
--         without a reader (cancel, finish), fingerprint of the body ('' without an Idempotency-Key), lane: a line of a batch
--         takes nothing of the limits on requests a minute (docs/spec/contract.md section 3, Batches), the process that sends
--         the line ('' it is no line), both rates, and tokens and micro-credits at most, as the worker will count them,
--         lifetime of the body in ms, name of the job, how long its end is kept in ms ('' the service's own time),
--       4 body without its last brace ('' it comes later), 5 data of the job, 6 its options, 7 metadata as JSON ('' none),
--       8 until when its sender waits for the answer, by this server's clock ('' unknown)
-- Further keys, in this order: throttle log (the throttle is tighter than the rpm), day counters (a daily limit), test
-- allowance (not billed), idempotency record (a fingerprint), requests of the entity, lease of those who send lines and
-- mark of a batch that is being ended (a line)
local MEAN_UNKNOWN = 500
local ENQUEUE_GRACE_MS = 10000
local READER_LEASE_MS = 15000
local IDEMPOTENCY_MS = 86400000
-- Each has a throttle log of its own.
local ENDPOINTS = { 'chat', 'chat.stream' }

-- They are read often, and a local name is found sooner.
local KEYS, ARGV = KEYS, ARGV
-- The order of acceptance is time in microseconds: it survives a Redis that comes back empty, as a counter would not.
local seq = now_us()
local now = math.floor(seq / 1000)
-- Its sender has given up meanwhile: nobody waits for what would run here.
if ARGV[8] ~= '' and now > tonumber(ARGV[8]) then return { 'late', now } end
local seq_text = int(seq)
local now_text = string.sub(seq_text, 1, -4)
local id = ARGV[1]
local rpm_limit, throttle_limit, tpm_limit, daily_limit, prompt, completion, prompt_rate, completion_rate, lane_limit,
  deadline_ms, weight, tenant_rpm, tenant_tpm, open_limit, share, is_entity, in_windows = unpack(cjson.decode(ARGV[2]))
local is_billed, budget, month, channel, tenant, key_id, life, tier, alone, fingerprint, lane, leader, rates, body_ms, job_name,
  keep = struct.unpack('ssssssssssssssss', ARGV[3])
local billed, is_batch = is_billed == '1', lane == 'batch'
local throttle_log, day_key, allowance_key, idempotency_key, entity_key, lease_key, closed_key
local last_key = 15
-- A throttle that is no tighter than the rpm can never be the one that refuses, so it is not even counted.
if throttle_limit < rpm_limit and not is_batch then last_key, throttle_log = last_key + 1, KEYS[last_key + 1] end
if daily_limit > 0 then last_key, day_key = last_key + 1, KEYS[last_key + 1] end
if not billed then last_key, allowance_key = last_key + 1, KEYS[last_key + 1] end
if fingerprint ~= '' then last_key, idempotency_key = last_key + 1, KEYS[last_key + 1] end
if is_entity == 1 then last_key, entity_key = last_key + 1, KEYS[last_key + 1] end
if leader ~= '' then lease_key, closed_key = KEYS[last_key + 1], KEYS[last_key + 2] end

local requests = count_of(KEYS[2], now)
local throttled = throttle_log and count_of(throttle_log, now)
local key = to_use(KEYS[3], redis.call('HGET', KEYS[3], 'u'), now)

-- Mostly there is none of these: no record of this request, nothing before the line, nothing in it.
local first, waiting, existing = {}, 0, nil
local found = redis.call('EXISTS', KEYS[1], KEYS[8], KEYS[11])
if found > 0 then
  first = redis.call('ZRANGE', KEYS[11], '0', '0', 'WITHSCORES')
  if first[1] then found, waiting = found - 1, redis.call('ZCARD', KEYS[11]) end
end
if found > 0 then
  existing = redis.call('HMGET', KEYS[1], 'state', 'holdTokens', 'seq')
  waiting = waiting + redis.call('LLEN', KEYS[8])
end
local strings = idempotency_key and redis.call('MGET', KEYS[5], KEYS[6], KEYS[9], idempotency_key)
  or redis.call('MGET', KEYS[5], KEYS[6], KEYS[9])

local reserved = 'ht:' .. month
local names = is_batch and { 'u', 'f:batch', 'o:batch', 'open', 'weight', 'held', reserved }
  or { 'u', 'f:interactive', 'o:interactive', 'open', 'weight', 'held', reserved }
if billed then
  names[8], names[9] = 'book', 'pend'
  if budget ~= '' then names[10], names[11] = 'bt:' .. month, 'pt:' .. month end
end
-- A turn can only follow another one where somebody waits.
if first[1] then names[#names + 1] = 's:' .. lane end
local account = redis.call('HMGET', KEYS[4], unpack(names))
local use = to_use(KEYS[4], account[1], now)

completion = math.min(completion, strings[3] and math.ceil(strings[3]) or MEAN_UNKNOWN)
-- What it is likely to take is held of credits, budget and allowance. The windows may be asked for more.
local likely = prompt + completion
local estimate = in_windows < 0 and likely or in_windows
local micro = prompt * prompt_rate + completion * completion_rate
-- `open` is how many there were when they were last counted, and all that came since: most of them have left, so it is
-- counted again only where a limit could be reached.
local open, held, held_tokens = number_of(account[4]), number_of(account[6]), number_of(account[7])
local day = day_key and read_day(day_key, now)
local is_free = not existing and not lease_key and not strings[1] and not strings[2] and not strings[4]
  and (requests < rpm_limit or is_batch)
  and (not throttled or throttled < throttle_limit)
  and (not day or day.total < daily_limit)
  and (key.tokens == 0 or key.tokens + estimate <= tpm_limit)
  and (tenant_rpm < 0 or is_batch or use.requests < tenant_rpm)
  and (tenant_tpm < 0 or use.tokens + estimate <= tenant_tpm)
  and (is_batch or account[4] and open < share and (open_limit < 0 or open < open_limit))
  and waiting < lane_limit / 2
-- What is taken of budget or allowance, and what is left of them: of credits, too, nil without a balance.
local reserve, balance, left, used = likely, nil, nil, 0
if not billed then
  used = number_of(redis.call('GET', allowance_key))
  left = budget - used
elseif account[8] then
  balance = account[8] - number_of(account[9])
  is_free = is_free and balance > 0 and (held <= 0 or balance - held >= micro)
  if budget ~= '' then left, used = budget - number_of(account[10]) - number_of(account[11]), held_tokens end
else
  is_free = false
end
-- Where nothing is taken of them yet a small rest admits one.
if left and (left <= 0 or used > 0 and left - (billed and used or 0) < likely) then is_free = false end
if not is_free then
  local refused, counted = refusal({
    now = now, id = id, lane = lane, billed = billed, is_batch = is_batch, existing = existing, strings = strings,
    tenant = tenant, channel = channel, lease_key = lease_key, closed_key = closed_key, leader = leader,
    throttle_log = throttle_log, throttled = throttled, day = day, key = key, use = use,
    requests = requests, rpm_limit = rpm_limit, throttle_limit = throttle_limit, tpm_limit = tpm_limit,
    daily_limit = daily_limit, tenant_rpm = tenant_rpm, tenant_tpm = tenant_tpm, open_limit = open_limit, share = share,
    lane_limit = lane_limit, is_open_known = account[4], open = open, waiting = waiting, estimate = estimate, likely = likely,
    micro = micro, balance = balance, held = held, left = left, used = used,
  })
  if refused then return refused end
  open = counted
end
-- The one request that a small rest always admits holds what there is: more would let it spend more.
if balance then micro = math.min(micro, balance) end
if left then reserve = math.min(reserve, left) end

-- All is well: from here on it is written.
count_use(key, 1, estimate)
local more = {}
local at = add_use(more, 0, key)
if not is_batch then
  redis.call('ZADD', KEYS[2], now_text, id)
  if requests == 0 then keep_log(KEYS[2], now) end
  requests = requests + 1
end
if throttle_log then
  redis.call('ZADD', throttle_log, now_text, id)
  if throttled == 0 then keep_log(throttle_log, now) end
end
-- Once a minute the key's windows and all of its logs are given longer to live, whichever request comes first then; a log
-- without requests may be a new one.
local is_due = key.entries and now - key.kept_at >= MINUTE_MS
if is_due then more[at + 1], more[at + 2] = 'kept', now_text end
redis.call('HSET', KEYS[3], unpack(more))
if is_due then
  redis.call('PEXPIRE', KEYS[3], 3 * MINUTE_MS)
  keep_log(KEYS[2], now)
  for _, endpoint in ipairs(ENDPOINTS) do keep_log(tag_of(KEYS[7]) .. 'thr:' .. endpoint .. ':' .. key_id, now) end
end
if day then log_day(day) end

local start, is_first, follows = start_tag(first, number_of(account[2]), now)
-- Where nobody waits there is nobody to be fair to: nothing is owed any more.
local work = TURN_TOKENS + estimate + (is_first and 0 or number_of(account[3]))
local charged = math.max(1, work)
local turn = decimal(start)
count_use(use, is_batch and 0 or 1, estimate)
more = { names[2], decimal(start + charged / weight) }
at = add_use(more, 2, use)
-- Mostly nothing is owed.
local owed = work == charged and '0' or int(work - charged)
if owed ~= account[3] then at, more[at + 1], more[at + 2] = at + 2, names[3], owed end
-- A turn that does not follow the tenant's last one begins a row of its own, from which corrections count.
if not follows then
  more[at + 1], more[at + 2], more[at + 3], more[at + 4] = 'c:' .. lane, now_text, 's:' .. lane, '0'
  at = at + 4
end
if number_of(account[5]) ~= weight then at, more[at + 1], more[at + 2] = at + 2, 'weight', weight end
if billed then
  more[at + 1], more[at + 2], more[at + 3], more[at + 4] = 'held', int(held + micro), reserved, int(held_tokens + reserve)
  at = at + 4
else
  use_allowance(allowance_key, reserve)
end
if not is_batch then
  more[at + 1], more[at + 2] = 'open', int(open + 1)
  redis.call('ZADD', KEYS[10], seq_text, id)
end
redis.call('HSET', KEYS[4], unpack(more))

more, at = {}, 0
if budget ~= '' then at, more[1], more[2] = 2, 'limit', budget end
if allowance_key then at, more[at + 1], more[at + 2] = at + 2, 'allowance', allowance_key end
if ARGV[7] ~= '' then at, more[at + 1], more[at + 2] = at + 2, 'metadata', ARGV[7] end
if is_batch then at, more[at + 1], more[at + 2] = at + 2, 'lane', lane end
if follows and number_of(account[#names]) ~= 0 then at, more[at + 1], more[at + 2] = at + 2, 'shift', account[#names] end
if keep ~= '' then at, more[at + 1], more[at + 2] = at + 2, 'keep', keep end
-- Where nobody waits it follows from the time of acceptance.
if not is_first then at, more[at + 1], more[at + 2] = at + 2, 'turn', turn end
if idempotency_key then
  more[at + 1], more[at + 2] = 'idempotency', idempotency_key
  redis.call('SET', idempotency_key, id .. ' ' .. fingerprint .. ' ' .. tenant, 'PX', IDEMPOTENCY_MS)
end
local estimate_text = int(estimate)
redis.call('HSET', KEYS[1], 'state', 'accepted', 'fence', '0', 'seq', seq_text, 'tenant', tenant, 'key', key_id,
  'billed', is_billed, 'hold', int(micro), 'holdTokens', reserve == estimate and estimate_text or int(reserve), 'month', month, 'sent', '0',
  'deadline', int(now + deadline_ms), 'acceptedAt', now_text, 'channels', channel, 'life', life,
  'estimate', estimate_text, 'rates', rates,
  'tier', tier, 'alone', alone, 'reader:' .. channel, int(now + READER_LEASE_MS), unpack(more))
-- By the time at which the request has surely left nothing behind: what is kept for a day may stay here for so long.
if entity_key then
  redis.call('ZREMRANGEBYSCORE', entity_key, '-inf', now_text)
  redis.call('ZADD', entity_key, int(now + life + (alone == 'finish' and IDEMPOTENCY_MS or 0)), id)
  redis.call('PEXPIRE', entity_key, int(life + IDEMPOTENCY_MS))
end
redis.call('ZADD', KEYS[7], int(now + ENQUEUE_GRACE_MS), id)
if ARGV[4] ~= '' then
  -- A command costs less than a text of kilobytes that Lua puts together.
  redis.call('SET', KEYS[15], ARGV[4], 'PX', body_ms)
  redis.call('APPEND', KEYS[15], ',"acceptedAt":' .. now_text .. '}')
  add_job(KEYS[12], KEYS[11], KEYS[13], KEYS[14], id, job_name, ARGV[5], ARGV[6], now_text, turn)
end
-- What was just admitted is the newest member of the log.
return { 'admitted', requests, MINUTE_MS, key.tokens, reset_of_use(key, now), 0, estimate, seq, now }
