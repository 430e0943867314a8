-- Admits one chat request, all or nothing. A 429 takes nothing; a 402, a suspended tenant's 403 and a full queue's 503
-- take only the request count. With a body, the request is queued from here on; without one, enqueue.lua queues it.
-- Calling a command costs more than the work it does, so values that lie together are read and written together
-- (docs/decisions/0003-atomic-admission.md). The script reads, then checks in one order, then writes.
--
-- KEYS  1 record
--       2 requests of the key in the last minute
--       3 token window of the key
--       4 account, with the tenant's token window and finish tags
--       5 flag of the key
--       6 flag of the tenant
--       7 inflight
--       8 list of jobs handed out before
--       9 mean completion of the key
--      10 open requests of the tenant
--      11 waiting queue
--      12 job
--      13 marker
--      14 settings of the queue
--      15 body
--      and those of which `at` has the places
-- ARGV  1 request id
--       2 named values as a JSON object; one that is absent does not apply (`namedValues` in admit-arguments.ts)
--       3 body without its last brace ('': it comes later)
--       4 data of the job
--       5 options of the job
--       6 metadata as JSON ('': none)
--       7 until when the caller waits, by this server's clock ('': unknown)
-- Returns the verdict, the key's requests and ms until none is left, its tokens and the same, ms until the call may be
-- repeated, tokens held, place in the order of acceptance, now; and what `joined` and `moved` say.
local MEAN_UNKNOWN = 500
local ENQUEUE_GRACE_MS = 10000
local IDEMPOTENCY_MS = 86400000
-- An hour's ceiling of unpaid tokens: this part of the tokens a minute, but no less than the second number.
local UNPAID_PART, UNPAID_LEAST = 10, 1000000
-- Bounds a tenant's open requests (docs/spec.md#bodies).
local BODIES_BYTES_MAX = 256 * 1024 * 1024
-- These have a throttle log of their own.
local ENDPOINTS = { 'chat', 'chat.stream' }
-- At the ceiling of requests in flight, this many of the oldest are checked for lost ends. The same number of the
-- newest shows how much of the allowance is held.
local LOOK_AT = 20

-- Local names are found sooner than global ones.
local KEYS, ARGV = KEYS, ARGV
-- The order of acceptance: time in microseconds, which unlike a counter stays right when Redis comes back empty.
local seq = now_us()
local now = math.floor(seq / 1000)
-- The caller has given up, so nobody is waiting for the answer.
if ARGV[7] ~= '' and now > tonumber(ARGV[7]) then return { 'deadline_passed', now } end
local seq_text = int(seq)
local now_text = string.sub(seq_text, 1, -4)
local id, req = ARGV[1], cjson.decode(ARGV[2])
local billed, queue, is_batch = req.isBilled, req.queue, req.queue == 'batch'
local throttle_log, day_key = KEYS[req.at.throttle], KEYS[req.at.day]
local allowance_key, named_key = KEYS[req.at.allowance], KEYS[req.at.named]
local records = string.sub(KEYS[1], 1, -#id - 1)

-- Reads windows of the key, waiting requests, flags, the account.
local requests = count_of(KEYS[2], now)
local throttled = throttle_log and count_of(throttle_log, now)
local key_window, kept_at = unpack(redis.call('HMGET', KEYS[3], 'minute', 'kept'))
local key = read_window(KEYS[3], key_window, now)

-- Usually none exists of this request's record, a job handed out before and a waiting job. `first`: the job with the
-- lowest tag, and that tag.
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
local joined, retries = not req.attempt and known, req.attempt == 'again' and known

local finish_name, debt_name, hold_name = 'finishTag:' .. queue, 'debt:' .. queue, 'heldTokens:' .. req.month
local names = { 'minute', finish_name, debt_name, 'open', 'weight', 'held', hold_name, 'unpaid' }
if billed then
  names[9], names[10] = 'ledgerBalance', 'pending'
  if req.budget then names[11], names[12] = 'ledgerTokens:' .. req.month, 'pendingTokens:' .. req.month end
end
-- Only if requests wait can a request follow its tenant's last one directly.
if first[1] then names[#names + 1] = 'shift:' .. queue end
local account = redis.call('HMGET', KEYS[4], unpack(names))
local use_window, finish, debt, open_text, known_weight, held, held_tokens, noted = unpack(account, 1, 8)
local use = read_window(KEYS[4], use_window, now)

local completion = math.min(req.completionTokens, mean and math.ceil(mean) or MEAN_UNKNOWN)
-- Credits, budget and allowance hold the likely use. The windows may count more.
local likely = req.promptTokens + completion
local estimate = req.countedTokens or likely
local micro = req.promptTokens * req.promptRate + completion * req.completionRate
-- `open` is an upper bound, the last count plus all admitted since; it is counted again only when it reaches a limit.
local open, held, held_tokens = number_of(open_text), number_of(held), number_of(held_tokens)
local day = day_key and read_day(day_key, now)
-- `balance` is false if Redis lacks the account. `left` is the rest of budget or allowance; `used` is running requests'
-- part (of the allowance: all of the day's).
local balance, left, used = nil, nil, 0
if not billed then
  used = number_of(redis.call('GET', allowance_key))
  left = req.budget - used
else
  local ledger_balance, pending, ledger_tokens, pending_tokens = unpack(account, 9)
  balance = ledger_balance and ledger_balance - number_of(pending)
  if ledger_balance and req.budget then
    left, used = req.budget - number_of(ledger_tokens) - number_of(pending_tokens), held_tokens
  end
end
-- Any rest admits a first request. A test request may use all that its prompt leaves of the allowance; its answer ends
-- there. A line of a batch waits for its likely use.
local needed = (billed or is_batch) and likely or req.promptTokens + 1

local function reply(verdict, retry_ms, tokens, place)
  return {
    verdict, requests, place and MINUTE_MS or reset_of(KEYS[2], now), key.tokens, reset_of_window(key, now),
    math.ceil(retry_ms or 0), tokens or 0, place or 0, now,
  }
end

-- Counts the request, unless it is a replay, which was counted when it was first accepted.
local function reply_counted(verdict, retry_ms)
  if not is_batch and not req.isReplay then
    log_request(KEYS[2], id, now)
    requests = requests + 1
    count_now(use, 1, 0)
    redis.call('HSET', KEYS[4], 'minute', text_of_window(use))
  end
  return reply(verdict, retry_ms)
end

-- A running request ends within about one recent duration; the first of many ends sooner.
local function until_end_of(count)
  local duration = number_of(redis.call('HGET', KEYS[4], 'duration'))
  return math.min(30000, math.max(1000, duration / math.max(1, count)))
end

-- The call was repeated after its reply was lost: a worker may have the request, or it was voided. A request without a
-- channel was admitted by another process.
local function check_repetition()
  if not existing or not existing[1] then return end
  local state, tokens, place = unpack(existing)
  local is_admitted = state == 'accepted' or req.channel ~= '' and state ~= 'void'
  return reply(is_admitted and 'admitted' or 'void', 0, number_of(tokens), number_of(place))
end

-- A leader that was cut off may bring lines that its successor has sent or ended.
local function check_leader()
  if not req.leader then return end
  if redis.call('GET', KEYS[req.at.lease]) ~= req.leader or redis.call('EXISTS', KEYS[req.at.closed]) == 1 then
    return reply('void')
  end
end

-- These limits also hold for suspended accounts and joining calls.
local function check_request_limits()
  if is_batch then return end
  if requests >= req.rpmLimit then return reply('rpm', wait_for_place(KEYS[2], req.rpmLimit, now)) end
  if req.tenantRpm and use.requests >= req.tenantRpm then
    return reply('tenant_rpm', wait_for_window(use, 'requests', req.tenantRpm - 1, now))
  end
end

-- Another tenant flag than 1 marks its move (set-move-marker.lua): this shard admits nothing.
local function check_flags()
  if key_flag then return reply(key_flag == '1' and 'revoked' or 'changed') end
  if not tenant_flag then return end
  if tenant_flag == '1' then return check_request_limits() or reply_counted('suspended') end
  local moved = reply('moved')
  moved[10] = tenant_flag
  return moved
end

-- The same Idempotency-Key, or a client's own retry, joins the first call's request and only counts as a request.
local function check_joining()
  local unread = retries and find_unread(retries, records, now)
  if not joined and not unread then return end
  local refused = check_request_limits()
  if refused then return refused end
  local reply_joined = reply_counted('joined')
  reply_joined[10] = joined or unread .. ' ' .. req.fingerprint
  -- With this reader, another retry joins another request.
  if unread then
    local record = records .. unread
    lease_reader(record, redis.call('HGET', record, 'channels') or '', req.channel, READER_LEASE_MS, 'joined', '1')
  end
  return reply_joined
end

-- Removes the oldest of the tenant's open requests that have ended, or whose records are gone.
local function remove_ended()
  local ended = 0
  for _, other in ipairs(redis.call('ZRANGE', KEYS[10], 0, LOOK_AT - 1)) do
    local state = redis.call('HGET', records .. other, 'state')
    if state ~= 'accepted' and state ~= 'running' then ended = ended + redis.call('ZREM', KEYS[10], other) end
  end
  return ended
end

-- Counts only if the upper bound reaches a limit. Returns whether the open requests reach the ceiling.
local function is_open_full()
  if is_batch then return false end
  if open_text and open < req.tenantShare and not (req.openLimit and open >= req.openLimit) then return false end
  open = redis.call('ZCARD', KEYS[10])
  if not req.openLimit or open < req.openLimit then return false end
  open = open - remove_ended()
  return open >= req.openLimit
end

-- The newest open requests' hold of the allowance. Most hold more than they take and will give the rest back.
local function held_by_tests()
  local sum = 0
  for _, other in ipairs(redis.call('ZREVRANGE', KEYS[10], 0, LOOK_AT - 1)) do
    local is_billed, tokens = unpack(redis.call('HMGET', records .. other, 'billed', 'holdTokens'))
    if is_billed == '0' then sum = sum + number_of(tokens) end
  end
  return sum
end

-- All windows must pass, so the longest wait counts.
local function check_windows()
  local verdict, wait = nil, 0
  local function refuse(name, ms)
    if ms > wait then verdict, wait = name, ms end
  end
  if requests >= req.rpmLimit and not is_batch then refuse('rpm', wait_for_place(KEYS[2], req.rpmLimit, now)) end
  if throttled and throttled >= req.throttleLimit then
    refuse('throttle', wait_for_place(throttle_log, req.throttleLimit, now))
  end
  if day and day.total >= req.dailyLimit then refuse('daily', wait_for_day(day, req.dailyLimit, now)) end
  if not req.isFree and key.tokens > 0 and key.tokens + estimate > req.tpmLimit then
    refuse('tpm', wait_for_window(key, 'tokens', math.max(0, req.tpmLimit - estimate), now))
  end
  if req.tenantRpm and use.requests >= req.tenantRpm and not is_batch then
    refuse('tenant_rpm', wait_for_window(use, 'requests', req.tenantRpm - 1, now))
  end
  if req.tenantTpm then
    if not req.isFree and use.tokens > 0 and use.tokens + estimate > req.tenantTpm then
      refuse('tenant_tpm', wait_for_window(use, 'tokens', math.max(0, req.tenantTpm - estimate), now))
    end
    if noted and unpaid_in_hour(noted, now) >= math.max(UNPAID_LEAST, req.tenantTpm / UNPAID_PART) then
      refuse('unpaid', HOUR_MS - now % HOUR_MS)
    end
  end
  if is_open_full() then refuse('max_in_flight', until_end_of(open)) end
  if not billed and not req.isFree and (left <= 0 or used > 0 and left < needed) then
    if left + held_by_tests() >= needed then
      refuse('test_tokens_in_flight', until_end_of(1))
    else
      refuse('test_tokens', 86400000 - now % 86400000)
    end
  end
  if verdict then return reply(verdict, wait, estimate) end
end

local function check_money()
  if not billed or req.isFree then return end
  if not balance then return reply('balance_missing') end
  if balance <= 0 then return reply_counted('credits') end
  if held > 0 and balance - held < micro then return reply_counted('credits_in_flight', until_end_of(1)) end
  if left and left <= 0 then return reply_counted('budget') end
  if left and used > 0 and left - used < needed then return reply_counted('budget_in_flight', until_end_of(1)) end
end

-- An image has few tokens and many bytes, so no other limit holds large bodies back.
local function are_bodies_full()
  if not req.largeBytes or is_batch then return false end
  local bytes = req.largeBytes
  for _, other in ipairs(redis.call('ZRANGE', KEYS[10], 0, -1)) do
    bytes = bytes + number_of(redis.call('HGET', records .. other, 'largeBytes'))
  end
  return bytes > BODIES_BYTES_MAX
end

local function check_queue()
  local function reply_full(name, hash, whose)
    if is_batch or req.isReplay then return reply(name, 1000) end
    return reply_counted(name, retry_estimate_ms(hash, whose, now))
  end
  if not is_batch and open >= req.tenantShare and open - taken_of(KEYS[10], KEYS[11], open) >= req.tenantShare then
    return reply_full('queue_share', KEYS[4], 'own')
  end
  if are_bodies_full() then return reply_counted('bodies', until_end_of(1)) end
  if waiting >= req.queueLimit then return reply_full('queue', tag_of(KEYS[7]) .. 'throughput:' .. queue, 'queue') end
end

local refused = check_repetition() or check_leader() or check_flags() or check_joining() or check_windows()
  or check_money() or check_queue()
if refused then return refused end
-- Such a first request holds, and so spends, only the rest; a free one of an overdrawn account holds nothing.
if balance then micro = math.min(micro, math.max(0, balance)) end
local reserve = left and math.min(likely, math.max(0, left)) or likely

-- Admitted: the script writes from here on.
count_now(key, 1, estimate)
local key_fields = { 'minute', text_of_window(key) }
if not is_batch then
  redis.call('ZADD', KEYS[2], now_text, id)
  -- A log without requests may lack a time to live.
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
  for _, endpoint in ipairs(ENDPOINTS) do keep_log(tag_of(KEYS[7]) .. 'thr:' .. endpoint .. ':' .. req.keyId, now) end
end
if day then log_day(day) end

local ends_at = number_of(finish)
local ahead = first[2] and ends_at - first[2] or 0
if ahead > NEAR_HEAD and is_ahead_of_clock(ends_at, ahead, now, queue, KEYS[10], KEYS[11], waiting) then ends_at = 0 end
local start, is_first, follows = start_tag(first, ends_at, now)
-- If nothing waits, nobody is treated unfairly, and the debt is forgotten.
local work = BASE_COST + estimate + (is_first and 0 or number_of(debt))
local charged = math.max(1, work)
local tag = decimal(start)
count_now(use, is_batch and 0 or 1, estimate)
local account_fields = { 'minute', text_of_window(use), finish_name, decimal(start + charged / req.weight) }
local new_debt = work == charged and '0' or int(work - charged)
if new_debt ~= debt then put(account_fields, debt_name, new_debt) end
-- Without its tenant's last request directly before it, a request begins a busy period: corrections count from there.
if not follows then
  put(account_fields, 'busySince:' .. queue, now_text)
  put(account_fields, 'shift:' .. queue, '0')
end
if number_of(known_weight) ~= req.weight then put(account_fields, 'weight', req.weight) end
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

local more = {}
if req.budget then put(more, 'limit', int(req.budget)) end
if allowance_key then put(more, 'allowance', allowance_key) end
if ARGV[6] ~= '' then put(more, 'metadata', ARGV[6]) end
if req.name then put(more, 'model', req.name) end
if is_batch then put(more, 'queue', queue) end
if req.largeBytes then put(more, 'largeBytes', int(req.largeBytes)) end
-- The last value read from the account.
local shift = account[#names]
if follows and number_of(shift) ~= 0 then put(more, 'shift', shift) end
if req.retentionMs then put(more, 'retentionMs', int(req.retentionMs)) end
-- If nothing waits, the start tag follows from the time of acceptance.
if not is_first then put(more, 'startTag', tag) end
if named_key and req.attempt then
  put(more, 'retries', named_key)
  local list = string.sub(known and id .. ' ' .. known or id, 1, RETRIES_LENGTH)
  redis.call('SET', named_key, list, 'PX', int(req.deadlineMs + RETRY_WINDOW_MS))
elseif named_key then
  put(more, 'idempotency', named_key)
  redis.call('SET', named_key, id .. ' ' .. req.fingerprint .. ' ' .. req.tenantId, 'PX', IDEMPOTENCY_MS)
end
redis.call('HSET', KEYS[1], 'state', 'accepted', 'fence', '0', 'seq', seq_text, 'tenant', req.tenantId, 'key', req.keyId,
  'billed', billed and '1' or '0', 'hold', int(micro), 'holdTokens', int(reserve), 'month', req.month, 'lastSeq', '0',
  'deadline', int(now + req.deadlineMs), 'acceptedAt', now_text, 'channels', req.channel, 'ttlMs', req.recordMs,
  'estimate', int(estimate), 'rates', req.rates,
  'tier', req.tier, 'onDisconnect', req.onDisconnect, 'reader:' .. req.channel, int(now + READER_LEASE_MS), unpack(more))
local entity_key = KEYS[req.at.entity]
-- The score is the time when nothing of the request is left; an answer that is kept for a day may stay that long.
if entity_key then
  redis.call('ZREMRANGEBYSCORE', entity_key, '-inf', now_text)
  redis.call('ZADD', entity_key, int(now + req.recordMs + (req.onDisconnect == 'finish' and IDEMPOTENCY_MS or 0)), id)
  redis.call('PEXPIRE', entity_key, int(req.recordMs + IDEMPOTENCY_MS))
end
redis.call('ZADD', KEYS[7], int(now + ENQUEUE_GRACE_MS), id)
if ARGV[3] ~= '' then
  -- Another command costs less than joining kilobytes in Lua.
  redis.call('SET', KEYS[15], ARGV[3], 'PX', req.bodyMs)
  redis.call('APPEND', KEYS[15], ',"acceptedAt":' .. now_text .. '}')
  add_job(KEYS[12], KEYS[11], KEYS[13], KEYS[14], id, req.jobName, ARGV[4], ARGV[5], now_text, tag)
end
-- The window is reset when this request, the newest, leaves it.
return { 'admitted', requests, MINUTE_MS, key.tokens, reset_of_window(key, now), 0, estimate, seq, now }
