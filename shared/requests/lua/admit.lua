-- Admits one chat request, all or nothing (docs/architecture/facts.md section 3). A 429 takes nothing; a 402 or 503
-- takes only the request count. With a body, the request is in line from here on; without one, enqueue.lua puts it
-- there. Calling a command costs more than the work it does, so values that lie together are read and written together
-- (docs/decisions/0003-atomic-admission.md). If anything could refuse the request, refusal.lua decides.
--
-- KEYS  1 record, 2 request log of the key, 3 token use of the key, 4 account, with the tenant's use and turns,
--       5 flag of the key, 6 flag of the tenant, 7 inflight, 8 BullMQ's list before the line, 9 mean completion of the key,
--       10 open requests of the tenant, 11 line, 12 job, 13 marker, 14 settings of the queue, 15 body.
--       Then, for requests that have them and in this order: request log of the throttle (if it is tighter than the rpm),
--       day counters (daily limit), test allowance (not billed), idempotency record or list of tries (fingerprint),
--       requests of the entity, batch lease and mark of a closed batch (line of a batch). refusal.lua makes the names that
--       only it needs.
-- ARGV  1 request id, 2 numbers as a JSON array, 3 short texts, each followed by a NUL (2 and 3: see the locals below, and
--       admit-call.ts), 4 body without its last brace ('': it comes later), 5 data of the job, 6 its options,
--       7 metadata as JSON ('': none), 8 until when the caller waits, by this server's clock ('': unknown)
local MEAN_UNKNOWN = 500
local ENQUEUE_GRACE_MS = 10000
local IDEMPOTENCY_MS = 86400000
-- An hour's ceiling of tokens that nobody pays for: this part of the tokens a minute, but no less than so many.
local UNPAID_PART, UNPAID_LEAST = 10, 1000000
-- Endpoints with a throttle log of their own.
local ENDPOINTS = { 'chat', 'chat.stream' }

-- Local names are found sooner than global ones.
local KEYS, ARGV = KEYS, ARGV
-- The order of acceptance is the time in microseconds. Unlike a counter, it stays right when Redis comes back empty.
local seq = now_us()
local now = math.floor(seq / 1000)
-- The caller has given up, so nobody is waiting for the answer.
if ARGV[8] ~= '' and now > tonumber(ARGV[8]) then return { 'late', now } end
local seq_text = int(seq)
local now_text = string.sub(seq_text, 1, -4)
local id = ARGV[1]
-- Limits are per minute, except for the daily one (0: none). tenant_rpm, tenant_tpm and open_limit are -1 without a
-- ceiling; rates are micro-credits per token; share is how many requests in line the tenant may have; in_windows is how
-- many tokens the request counts in the windows (-1: its estimate).
local rpm_limit, throttle_limit, tpm_limit, daily_limit, prompt, completion, prompt_rate, completion_rate, lane_limit,
  deadline_ms, weight, tenant_rpm, tenant_tpm, open_limit, share, is_entity, in_windows = unpack(cjson.decode(ARGV[2]))
-- budget is the test allowance if the request is not billed ('': none). fingerprint is '' without an Idempotency-Key,
-- unless a client says which try of a call this is: then try is 'first' or 'again', else ''. leader is '' unless this is a
-- line of a batch, own_retention is '' for the service's own time. rates also has the most tokens and micro-credits that
-- the worker may count.
local is_billed, budget, month, channel, tenant, key_id, record_ms, tier, on_disconnect, fingerprint, lane, leader, rates,
  body_ms, job_name, own_retention, try = struct.unpack('sssssssssssssssss', ARGV[3])
-- Lines of batches do not count towards the limits on requests per minute (docs/spec.md#batch-lines).
local billed, is_batch = is_billed == '1', lane == 'batch'
local throttle_log, day_key, allowance_key, named_key, entity_key, lease_key, closed_key
local last_key = 15
-- A throttle that is no tighter than the rpm never refuses, so it is not counted.
if throttle_limit < rpm_limit and not is_batch then last_key, throttle_log = last_key + 1, KEYS[last_key + 1] end
if daily_limit > 0 then last_key, day_key = last_key + 1, KEYS[last_key + 1] end
if not billed then last_key, allowance_key = last_key + 1, KEYS[last_key + 1] end
if fingerprint ~= '' then last_key, named_key = last_key + 1, KEYS[last_key + 1] end
if is_entity == 1 then last_key, entity_key = last_key + 1, KEYS[last_key + 1] end
if leader ~= '' then lease_key, closed_key = KEYS[last_key + 1], KEYS[last_key + 2] end

-- Read: windows of the key, waiting requests, flags, the account.
local requests = count_of(KEYS[2], now)
local throttled = throttle_log and count_of(throttle_log, now)
local key_entries, kept_at = unpack(redis.call('HMGET', KEYS[3], 'w', 'kept'))
local key = read_window(KEYS[3], key_entries, now)

-- Usually none of the three exists: a record of this request, a job before the line, a job in it. `first` is the job with
-- the lowest tag, and its tag.
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
local key_flag, tenant_flag, mean, known = unpack(named_key
  and redis.call('MGET', KEYS[5], KEYS[6], KEYS[9], named_key) or redis.call('MGET', KEYS[5], KEYS[6], KEYS[9]))
local joined, retries = try == '' and known, try == 'again' and known

local finish_name, owed_name, hold_name = 'f:' .. lane, 'o:' .. lane, 'ht:' .. month
local names = { 'w', finish_name, owed_name, 'open', 'weight', 'held', hold_name, 'unpaid' }
if billed then
  names[9], names[10] = 'book', 'pend'
  if budget ~= '' then names[11], names[12] = 'bt:' .. month, 'pt:' .. month end
end
-- A turn can follow another one only if requests are waiting.
if first[1] then names[#names + 1] = 's:' .. lane end
local account = redis.call('HMGET', KEYS[4], unpack(names))
local use_entries, finish, owed, open_text, known_weight, held, held_tokens, noted = unpack(account, 1, 8)
local use = read_window(KEYS[4], use_entries, now)

completion = math.min(completion, mean and math.ceil(mean) or MEAN_UNKNOWN)
-- Credits, budget and allowance hold what the request is likely to take. The windows may count more.
local likely = prompt + completion
local estimate = in_windows < 0 and likely or in_windows
local micro = prompt * prompt_rate + completion * completion_rate
-- `open` is an upper bound: the open requests when they were last counted, plus all admitted since. They are counted
-- again only if the bound reaches a limit.
local open, held, held_tokens = number_of(open_text), number_of(held), number_of(held_tokens)
local day = day_key and read_day(day_key, now)
local is_unpaid_full = noted and tenant_tpm >= 0 and unpaid_in_hour(noted, now) >= math.max(UNPAID_LEAST, tenant_tpm / UNPAID_PART)
local is_free = not is_unpaid_full and not existing and not lease_key and not key_flag and not tenant_flag and not joined and not retries
  and (requests < rpm_limit or is_batch)
  and (not throttled or throttled < throttle_limit)
  and (not day or day.total < daily_limit)
  and (key.tokens == 0 or key.tokens + estimate <= tpm_limit)
  and (tenant_rpm < 0 or is_batch or use.requests < tenant_rpm)
  and (tenant_tpm < 0 or use.tokens + estimate <= tenant_tpm)
  and (is_batch or open_text and open < share and (open_limit < 0 or open < open_limit))
  and waiting < lane_limit
-- `balance` is false if Redis lacks the account. `left` is the rest of the budget, or of the allowance, and `used` what running
-- requests have taken of it (of the allowance: all requests of the day).
local reserve, balance, left, used = likely, nil, nil, 0
if not billed then
  used = number_of(redis.call('GET', allowance_key))
  left = budget - used
else
  local book, pending, booked_tokens, pending_tokens = unpack(account, 9)
  balance = book and book - number_of(pending)
  is_free = is_free and book and balance > 0 and (held <= 0 or balance - held >= micro)
  if book and budget ~= '' then left, used = budget - number_of(booked_tokens) - number_of(pending_tokens), held_tokens end
end
-- However small the rest is, it admits a first request. A test request may use whatever the allowance has left after its
-- prompt; its answer ends there. A line of a batch waits for all that it is likely to take.
local needed = (billed or is_batch) and likely or prompt + 1
if left and (left <= 0 or used > 0 and left - (billed and used or 0) < needed) then is_free = false end
if not is_free then
  local refused, counted = refusal({
    now = now, id = id, lane = lane, billed = billed, is_batch = is_batch, existing = existing,
    key_flag = key_flag, tenant_flag = tenant_flag, joined = joined, retries = retries, fingerprint = fingerprint,
    channel = channel, lease_key = lease_key, closed_key = closed_key, leader = leader,
    throttle_log = throttle_log, throttled = throttled, day = day, key = key, use = use,
    requests = requests, rpm_limit = rpm_limit, throttle_limit = throttle_limit, tpm_limit = tpm_limit,
    is_unpaid_full = is_unpaid_full,
    daily_limit = daily_limit, tenant_rpm = tenant_rpm, tenant_tpm = tenant_tpm, open_limit = open_limit, share = share,
    lane_limit = lane_limit, is_open_known = open_text, open = open, waiting = waiting, estimate = estimate, needed = needed,
    micro = micro, balance = balance, held = held, left = left, used = used,
  })
  if refused then return refused end
  open = counted
end
-- Such a first request holds no more than the rest, so it cannot spend more.
if balance then micro = math.min(micro, balance) end
if left then reserve = math.min(reserve, left) end

-- Admitted: the script writes from here on.
count_now(key, 1, estimate)
local key_fields = { 'w', key.entries }
if not is_batch then
  redis.call('ZADD', KEYS[2], now_text, id)
  -- A log without requests may be new, without a time to live.
  if requests == 0 then keep_log(KEYS[2], now) end
  requests = requests + 1
end
if throttle_log then
  redis.call('ZADD', throttle_log, now_text, id)
  if throttled == 0 then keep_log(throttle_log, now) end
end
-- Once a minute the windows and logs of the key get a new time to live.
local is_due = math.abs(now - number_of(kept_at)) >= MINUTE_MS
if is_due then put(key_fields, 'kept', now_text) end
redis.call('HSET', KEYS[3], unpack(key_fields))
if is_due then
  redis.call('PEXPIRE', KEYS[3], 3 * MINUTE_MS)
  keep_log(KEYS[2], now)
  for _, endpoint in ipairs(ENDPOINTS) do keep_log(tag_of(KEYS[7]) .. 'thr:' .. endpoint .. ':' .. key_id, now) end
end
if day then log_day(day) end

-- The tenant's turn, its use and what it holds.
local ends_at = number_of(finish)
local ahead = first[2] and ends_at - first[2] or 0
if ahead > NEAR_TURN and is_of_other_time(ends_at, ahead, now, lane, KEYS[10], KEYS[11], waiting) then ends_at = 0 end
local start, is_first, follows = start_tag(first, ends_at, now)
-- If nothing waits, there is nobody to be fair to, and what was owed is forgotten.
local work = TURN_TOKENS + estimate + (is_first and 0 or number_of(owed))
local charged = math.max(1, work)
local turn = decimal(start)
count_now(use, is_batch and 0 or 1, estimate)
local account_fields = { 'w', use.entries, finish_name, decimal(start + charged / weight) }
local still_owed = work == charged and '0' or int(work - charged)
if still_owed ~= owed then put(account_fields, owed_name, still_owed) end
-- A turn that does not follow the tenant's last one begins a new row: corrections count from its beginning.
if not follows then
  put(account_fields, 'c:' .. lane, now_text)
  put(account_fields, 's:' .. lane, '0')
end
if number_of(known_weight) ~= weight then put(account_fields, 'weight', weight) end
if billed then
  put(account_fields, 'held', int(held + micro))
  put(account_fields, hold_name, int(held_tokens + reserve))
else
  use_allowance(allowance_key, reserve)
end
if not is_batch then
  put(account_fields, 'open', int(open + 1))
  redis.call('ZADD', KEYS[10], seq_text, id)
end
redis.call('HSET', KEYS[4], unpack(account_fields))

-- The record: what every request has, and the fields that only some have.
local more = {}
if budget ~= '' then put(more, 'limit', budget) end
if allowance_key then put(more, 'allowance', allowance_key) end
if ARGV[7] ~= '' then put(more, 'metadata', ARGV[7]) end
if is_batch then put(more, 'lane', lane) end
-- The shift of the row is the last value read from the account.
local shift = account[#names]
if follows and number_of(shift) ~= 0 then put(more, 'shift', shift) end
if own_retention ~= '' then put(more, 'keep', own_retention) end
-- If nothing waits, the turn follows from the time of acceptance.
if not is_first then put(more, 'turn', turn) end
if named_key and try ~= '' then
  put(more, 'retries', named_key)
  local list = string.sub(known and id .. ' ' .. known or id, 1, RETRIES_LENGTH)
  redis.call('SET', named_key, list, 'PX', int(deadline_ms + RETRY_WINDOW_MS))
elseif named_key then
  put(more, 'idempotency', named_key)
  redis.call('SET', named_key, id .. ' ' .. fingerprint .. ' ' .. tenant, 'PX', IDEMPOTENCY_MS)
end
redis.call('HSET', KEYS[1], 'state', 'accepted', 'fence', '0', 'seq', seq_text, 'tenant', tenant, 'key', key_id,
  'billed', is_billed, 'hold', int(micro), 'holdTokens', int(reserve), 'month', month, 'sent', '0',
  'deadline', int(now + deadline_ms), 'acceptedAt', now_text, 'channels', channel, 'life', record_ms,
  'estimate', int(estimate), 'rates', rates,
  'tier', tier, 'alone', on_disconnect, 'reader:' .. channel, int(now + READER_LEASE_MS), unpack(more))
-- Scored with the time when nothing of the request is left any more; an answer that is kept for a day may stay that
-- long.
if entity_key then
  redis.call('ZREMRANGEBYSCORE', entity_key, '-inf', now_text)
  redis.call('ZADD', entity_key, int(now + record_ms + (on_disconnect == 'finish' and IDEMPOTENCY_MS or 0)), id)
  redis.call('PEXPIRE', entity_key, int(record_ms + IDEMPOTENCY_MS))
end
redis.call('ZADD', KEYS[7], int(now + ENQUEUE_GRACE_MS), id)
if ARGV[4] ~= '' then
  -- Another command costs less than joining kilobytes in Lua.
  redis.call('SET', KEYS[15], ARGV[4], 'PX', body_ms)
  redis.call('APPEND', KEYS[15], ',"acceptedAt":' .. now_text .. '}')
  add_job(KEYS[12], KEYS[11], KEYS[13], KEYS[14], id, job_name, ARGV[5], ARGV[6], now_text, turn)
end
-- The window is reset when this request leaves it: it is the newest.
return { 'admitted', requests, MINUTE_MS, key.tokens, reset_of_window(key, now), 0, estimate, seq, now }
