-- Admission of one chat request, whole or not at all (docs/architecture/facts.md section 3): a 429 takes nothing, a 402 or 503 only
-- the request count. With a body the request is in line from then on; without one enqueue.lua puts it there.
-- Each command costs more than what it does, so every value is read with its neighbours and written with them
-- (docs/decisions/0063-an-admission-in-few-commands.md). Where anything could stand in the way refusal.lua looks closer.
-- KEYS  1 record, 2 key rpm log, 3 what the key's requests take, 4 account, and what the tenant's requests take together,
--       5 blocked key, 6 blocked tenant, 7 inflight, 8 waiting list, 9 mean completion, 10 lane statistics,
--       11 the tenant's open requests, 12 line, 13 job, 14 marker, 15 settings of the queue, 16 body,
--       17 when callers of the tenant were told to come back to a full line, 18 the places that are kept for callers,
--       19 when those of the tenant were told so because of its share, 20 the places of its share that are kept for them,
--       then those that the values below ask for
-- ARGV  1 request id,
--       2 numbers as JSON, which is read faster than an argument each: rpm limit, throttle limit, tpm limit, daily limit
--         (0 none), prompt tokens, max tokens, prompt rate, completion rate (micro-credits a token), lane limit, deadline in
--         ms from now, weight of the tenant's turns, its requests and tokens a minute and requests in flight at most
--         (-1 none), its requests in line at most,
--       3 billed (1 live, 0 test), 4 budget limit ('' none) or test allowance limit, 5 month,
--       6 channel of the ingress, 7 tenant id, 8 key id, 9 lifetime of the record in ms, 10 tier,
--       11 metadata as JSON ('' none), 12 what happens without a reader (cancel, finish),
--       13 fingerprint of the body ('' without an Idempotency-Key),
--       14 lane: a line of a batch takes nothing of the limits on requests a minute
--          (docs/spec/contract.md section 3, Batches),
--       15 the process that sends the line ('' it is no line),
--       16 both rates, and tokens and micro-credits at most, as the worker will count them,
--       17 body without its last brace ('' it comes later), 18 lifetime of the body in ms, 19 name of the job, 20 its data,
--       21 its options, 22 whether it is an entity's (1), 23 how long its end is kept in ms ('' the service's own time),
--       24 until when its sender waits for the answer, by this server's clock ('' unknown)
-- Further keys, in this order: throttle log (the throttle is tighter than the rpm), day counters (a daily limit), test
-- allowance (not billed), idempotency record (a fingerprint), requests of the entity, lease of those who send lines and
-- mark of a batch that is being ended (a line)
local MEAN_UNKNOWN = 500
local ENQUEUE_GRACE_MS = 10000
local READER_LEASE_MS = 15000
local IDEMPOTENCY_MS = 86400000

-- They are read often, and a local name is found sooner.
local KEYS, ARGV = KEYS, ARGV
-- The order of acceptance is time in microseconds: it survives a Redis that comes back empty, as a counter would not.
local seq = now_us()
local now = math.floor(seq / 1000)
-- Its sender has given up meanwhile: nobody waits for what would run here.
if ARGV[24] ~= '' and now > tonumber(ARGV[24]) then return { 'late', now } end
local now_text, seq_text = int(now), int(seq)
local id, billed, lane, month = ARGV[1], ARGV[3] == '1', ARGV[14], ARGV[5]
local is_batch = lane == 'batch'
local rpm_limit, throttle_limit, tpm_limit, daily_limit, prompt, completion, prompt_rate, completion_rate, lane_limit,
  deadline_ms, weight, tenant_rpm, tenant_tpm, open_limit, share = unpack(cjson.decode(ARGV[2]))
local throttle_log, day_key, allowance_key, idempotency_key, entity_key, lease_key, closed_key
local last_key = 20
-- A throttle that is no tighter than the rpm can never be the one that refuses, so it is not even counted.
if throttle_limit < rpm_limit and not is_batch then last_key, throttle_log = last_key + 1, KEYS[last_key + 1] end
if daily_limit > 0 then last_key, day_key = last_key + 1, KEYS[last_key + 1] end
if not billed then last_key, allowance_key = last_key + 1, KEYS[last_key + 1] end
if ARGV[13] ~= '' then last_key, idempotency_key = last_key + 1, KEYS[last_key + 1] end
if ARGV[22] == '1' then last_key, entity_key = last_key + 1, KEYS[last_key + 1] end
if ARGV[15] ~= '' then lease_key, closed_key = KEYS[last_key + 1], KEYS[last_key + 2] end

local requests = count_of(KEYS[2], now)
-- Beside its windows the key has when these and its logs were last given longer to live.
local key_values = throttle_log and redis.call('HMGET', KEYS[3], 'w', 'r', 't', 'kept', KEYS[2], throttle_log)
  or redis.call('HMGET', KEYS[3], 'w', 'r', 't', 'kept', KEYS[2])
local key = to_use(key_values[1], key_values[2], key_values[3], now)

-- Mostly there is none of these: no record of this request, nothing before the line, nothing in it.
local first, waiting, existing = {}, 0, nil
local found = redis.call('EXISTS', KEYS[1], KEYS[8], KEYS[12])
if found > 0 then
  first = redis.call('ZRANGE', KEYS[12], '0', '0', 'WITHSCORES')
  if first[1] then found, waiting = found - 1, redis.call('ZCARD', KEYS[12]) end
end
if found > 0 then
  existing = redis.call('HMGET', KEYS[1], 'state', 'holdTokens', 'seq')
  waiting = waiting + redis.call('LLEN', KEYS[8])
end
local strings = idempotency_key and redis.call('MGET', KEYS[5], KEYS[6], KEYS[9], idempotency_key)
  or redis.call('MGET', KEYS[5], KEYS[6], KEYS[9])

local reserved = 'ht:' .. month
local names = is_batch and { 'w', 'r', 't', 'f:batch', 'o:batch', 'open', 'weight', 'held', reserved }
  or { 'w', 'r', 't', 'f:interactive', 'o:interactive', 'open', 'weight', 'held', reserved }
if billed then
  names[10], names[11] = 'book', 'pend'
  if ARGV[4] ~= '' then names[12], names[13] = 'bt:' .. month, 'pt:' .. month end
end
-- A turn can only follow another one where somebody waits.
if first[1] then names[#names + 1] = 's:' .. lane end
local account = redis.call('HMGET', KEYS[4], unpack(names))
local use = to_use(account[1], account[2], account[3], now)

completion = math.min(completion, strings[3] and math.ceil(strings[3]) or MEAN_UNKNOWN)
local estimate = prompt + completion
local micro = prompt * prompt_rate + completion * completion_rate
-- `open` is how many there were when they were last counted, and all that came since: most of them have left, so it is
-- counted again only where a limit could be reached.
local open, held, held_tokens = number_of(account[6]), number_of(account[8]), number_of(account[9])
local day = day_key and read_day(day_key, now)
local is_free = not existing and not lease_key and not strings[1] and not strings[2] and not strings[4]
  and (requests < rpm_limit or is_batch)
  and (not throttle_log or count_of(throttle_log, now) < throttle_limit)
  and (not day or day.total < daily_limit)
  and (key.tokens == 0 or key.tokens + estimate <= tpm_limit)
  and (tenant_rpm < 0 or is_batch or use.requests < tenant_rpm)
  and (tenant_tpm < 0 or use.tokens + estimate <= tenant_tpm)
  and (is_batch or account[6] and open < share and (open_limit < 0 or open < open_limit))
  and waiting < lane_limit / 2
-- What is taken of budget or allowance, and what is left of them: of credits, too, nil without a balance.
local reserve, balance, left, used = estimate, nil, nil, 0
if not billed then
  used = number_of(redis.call('GET', allowance_key))
  left = ARGV[4] - used
elseif account[10] then
  balance = account[10] - number_of(account[11])
  is_free = is_free and balance > 0 and (held <= 0 or balance - held >= micro)
  if ARGV[4] ~= '' then left, used = ARGV[4] - number_of(account[12]) - number_of(account[13]), held_tokens end
else
  is_free = false
end
-- Where nothing is taken of them yet a small rest admits one.
if left and (left <= 0 or used > 0 and left - (billed and used or 0) < estimate) then is_free = false end
if not is_free then
  local refused, counted = refusal({
    now = now, id = id, lane = lane, billed = billed, is_batch = is_batch, existing = existing, strings = strings,
    lease_key = lease_key, closed_key = closed_key, throttle_log = throttle_log, day = day, key = key, use = use,
    requests = requests, rpm_limit = rpm_limit, throttle_limit = throttle_limit, tpm_limit = tpm_limit,
    daily_limit = daily_limit, tenant_rpm = tenant_rpm, tenant_tpm = tenant_tpm, open_limit = open_limit, share = share,
    lane_limit = lane_limit, is_open_known = account[6], open = open, waiting = waiting, estimate = estimate,
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
local more, at = {}, 0
if not is_batch then
  redis.call('ZADD', KEYS[2], now_text, id)
  requests = requests + 1
  if now - number_of(key_values[5]) >= MINUTE_MS then
    at, more[1], more[2] = 2, KEYS[2], now_text
    keep_log(KEYS[2], now)
  end
end
if throttle_log then
  redis.call('ZADD', throttle_log, now_text, id)
  if now - number_of(key_values[6]) >= MINUTE_MS then
    at, more[at + 1], more[at + 2] = at + 2, throttle_log, now_text
    keep_log(throttle_log, now)
  end
end
if day then log_day(day) end
local is_key_due = now - number_of(key_values[4]) >= MINUTE_MS
if is_key_due then more[at + 1], more[at + 2] = 'kept', now_text end
redis.call('HSET', KEYS[3], 'w', key.entries, 'r', int(key.requests), 't', int(key.tokens), unpack(more))
if is_key_due then redis.call('PEXPIRE', KEYS[3], 3 * MINUTE_MS) end

local start, is_first, follows = start_tag(first, number_of(account[4]), now)
-- Where nobody waits there is nobody to be fair to: nothing is owed any more.
local work = TURN_TOKENS + estimate + (is_first and 0 or number_of(account[5]))
local charged = math.max(1, work)
local turn = decimal(start)
more, at = {}, 0
-- A turn that does not follow the tenant's last one begins a row of its own, from which corrections count.
if not follows then at, more[1], more[2], more[3], more[4] = 4, 'c:' .. lane, now_text, 's:' .. lane, '0' end
if number_of(account[7]) ~= weight then at, more[at + 1], more[at + 2] = at + 2, 'weight', weight end
if billed then
  more[at + 1], more[at + 2], more[at + 3], more[at + 4] = 'held', int(held + micro), reserved, int(held_tokens + reserve)
  at = at + 4
else
  use_allowance(allowance_key, reserve)
end
if not is_batch then
  more[at + 1], more[at + 2] = 'open', int(open + 1)
  redis.call('ZADD', KEYS[11], seq_text, id)
end
count_use(use, is_batch and 0 or 1, estimate)
redis.call('HSET', KEYS[4], 'w', use.entries, 'r', int(use.requests), 't', int(use.tokens),
  names[4], decimal(start + charged / weight), names[5], work == charged and '0' or int(work - charged), unpack(more))

more, at = {}, 0
if ARGV[4] ~= '' then at, more[1], more[2] = 2, 'limit', ARGV[4] end
if allowance_key then at, more[at + 1], more[at + 2] = at + 2, 'allowance', allowance_key end
if ARGV[11] ~= '' then at, more[at + 1], more[at + 2] = at + 2, 'metadata', ARGV[11] end
if is_batch then at, more[at + 1], more[at + 2] = at + 2, 'lane', lane end
if follows and number_of(account[#names]) ~= 0 then at, more[at + 1], more[at + 2] = at + 2, 'shift', account[#names] end
if ARGV[23] ~= '' then at, more[at + 1], more[at + 2] = at + 2, 'keep', ARGV[23] end
-- Where nobody waits it follows from the time of acceptance.
if not is_first then at, more[at + 1], more[at + 2] = at + 2, 'turn', turn end
if idempotency_key then
  more[at + 1], more[at + 2] = 'idempotency', idempotency_key
  redis.call('SET', idempotency_key, id .. ' ' .. ARGV[13] .. ' ' .. ARGV[7], 'PX', IDEMPOTENCY_MS)
end
local estimate_text = int(estimate)
redis.call('HSET', KEYS[1], 'state', 'accepted', 'fence', '0', 'seq', seq_text, 'tenant', ARGV[7], 'key', ARGV[8],
  'billed', ARGV[3], 'hold', int(micro), 'holdTokens', reserve == estimate and estimate_text or int(reserve), 'month', month, 'sent', '0',
  'deadline', int(now + deadline_ms), 'acceptedAt', now_text, 'channels', ARGV[6], 'life', ARGV[9],
  'estimate', estimate_text, 'rates', ARGV[16],
  'tier', ARGV[10], 'alone', ARGV[12], 'reader:' .. ARGV[6], int(now + READER_LEASE_MS), unpack(more))
-- By the time at which the request has surely left nothing behind: what is kept for a day may stay here for so long.
if entity_key then
  redis.call('ZREMRANGEBYSCORE', entity_key, '-inf', now_text)
  local life = tonumber(ARGV[9])
  redis.call('ZADD', entity_key, int(now + life + (ARGV[12] == 'finish' and IDEMPOTENCY_MS or 0)), id)
  redis.call('PEXPIRE', entity_key, int(life + IDEMPOTENCY_MS))
end
redis.call('ZADD', KEYS[7], int(now + ENQUEUE_GRACE_MS), id)
if ARGV[17] ~= '' then
  redis.call('SET', KEYS[16], ARGV[17] .. ',"acceptedAt":' .. now_text .. '}', 'PX', ARGV[18])
  add_job(KEYS[13], KEYS[12], KEYS[14], KEYS[15], id, ARGV[19], ARGV[20], ARGV[21], now_text, turn)
end
-- What was just admitted is the newest member of the log.
return { 'admitted', requests, MINUTE_MS, key.tokens, reset_of_use(key, now), 0, estimate, seq, now }
