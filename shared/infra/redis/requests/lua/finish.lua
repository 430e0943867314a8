-- Ends a request, once: last entry to the stream, hold turned into a pending charge, settlement to the outbox, token
-- weight corrected, body deleted.
-- KEYS 1 record, 2 body, 3 inflight, 4 account, 5 pending, 6 outbox, 7 what the key's requests take, 8 mean completion,
--      9 lane statistics, 10 whole answer, 11 the tenant's open requests, 12 job, 13 active jobs
-- ARGV 1 request id,
--      2 short texts, each before a NUL, which are read faster than an argument each: cost in micro-credits, total tokens,
--        completion tokens, tokens that stay in the key's window and in the test allowance, micro-credits by which an account
--        may be overdrawn, fence, last sequence number, sequence number of the event before, status, retention in ms (0 keeps
--        nothing), name of the claim ('' not compared), lane, lock of the job that ends with the request ('' none),
--      3 payload, behind its head where no event was before, 4 settlement ('' none), 5 notice for webhooks ('' none)
-- Returns 'finished', 'unheard' where nobody pays for it, or the state found when this attempt no longer owns the request; 'behind' with the last number
-- that Redis has where it came back without some of the text.
local MEAN_LIFETIME_MS = 86400000
-- Averages need not hear of every request: a sample of them spares writes.
local SAMPLE = 8
-- While MongoDB is away they wait; about so many.
local NOTICES_MAX = 100000

-- They are read often, and a local name is found sooner.
local KEYS, ARGV = KEYS, ARGV
local cost, tokens, completion, kept, overdraft, fence, last_seq, follows, status, retention, owner, lane, job_lock =
  struct.unpack('sssssssssssss', ARGV[2])
cost, kept = cost + 0, kept + 0
local id = ARGV[1]
local values = redis.call('HMGET', KEYS[1], 'state', 'fence', 'sent', 'owner', 'channels', 'billed', 'month', 'hold',
  'holdTokens', 'acceptedAt', 'estimate', 'weight', 'unheard')
local ended = values[13] and 'unheard' or 'finished'
-- Redis came back without the claim.
if values[1] == 'accepted' then return 'accepted' end
if values[2] and values[2] ~= fence then return 'superseded' end
if values[4] and owner ~= '' and values[4] ~= owner then return 'superseded' end
-- Sent again after a lost acknowledgement: it has happened.
if values[1] == 'done' then return ended end
if values[1] ~= 'running' then return values[1] or 'missing' end
if values[3] ~= follows then return 'behind ' .. values[3] end
local now = now_ms()
local now_text, keeps_nothing, is_billed = int(now), retention == '0', values[6] == '1'
local answer_ms = keeps_nothing and READING_MS or retention
local held, held_tokens = number_of(values[8]), number_of(values[9])
-- Names that few ends need are made from what all of the shard begin with.
local tag = tag_of(KEYS[3])
local stream = tag .. 's:' .. id
if follows == '0' then
  emit_whole(KEYS[10], values[5], id, ARGV[3], answer_ms)
else
  emit(stream, values[5], id, last_seq, ARGV[3], answer_ms, owner)
end
-- Ends the job as BullMQ's moveToFinished of the pinned version ends one that is not kept; an id that is left among those
-- that may have stalled is passed over. Where another worker has the job by now, that one finds that the request has ended.
local lock = KEYS[12] .. ':lock'
if job_lock ~= '' and redis.call('GET', lock) == job_lock then
  redis.call('LREM', KEYS[13], '-1', id)
  redis.call('UNLINK', KEYS[2], KEYS[12], lock)
else
  redis.call('UNLINK', KEYS[2])
end
redis.call('ZREM', KEYS[3], id)
redis.call('ZREM', KEYS[11], id)
-- Nobody pays for a request whose caller was told that it was not accepted.
local settlement = values[13] and '' or ARGV[4]
-- What was counted in the end may be more than was held. The account is charged only what it can pay and the overrun.
if is_billed and cost > held and redis.call('HEXISTS', KEYS[4], 'book') == 1 then
  local most = held + math.max(0, spendable(KEYS[4]) + overdraft)
  if cost > most then
    settlement = string.gsub(settlement, '"costMicro":%d+', '"costMicro":' .. int(most), 1)
    settlement = string.gsub(settlement, '"estimated":false', '"estimated":true', 1)
    cost = most
  end
end
local settles, is_sampled = settlement ~= '', string.byte(id, -1) % SAMPLE == 0

-- The account is read once and written once: what is owed, what the tenant takes, its turns and its pace.
local names = row_names(lane)
if is_billed then
  names[7], names[8] = 'held', 'ht:' .. values[7]
  if settles then names[9], names[10] = 'pend', 'pt:' .. values[7] end
  if is_sampled then names[#names + 1] = 'duration' end
end
local account, fields = redis.call('HMGET', KEYS[4], unpack(names)), {}
if is_billed then
  -- The hold becomes what is owed until its settlement is in the book.
  fields = { 'held', int(number_of(account[7]) - held), names[8], int(number_of(account[8]) - held_tokens) }
  if settles then
    redis.call('HSET', KEYS[5], id, int(cost) .. ':' .. tokens .. ':' .. values[7])
    fields[5], fields[6] = 'pend', int(number_of(account[9]) + cost)
    fields[7], fields[8] = names[10], int(number_of(account[10]) + tokens)
  end
  if is_sampled then
    local duration, mine = number_of(account[#names]), now - number_of(redis.call('HGET', KEYS[1], 'startedAt'))
    fields[#fields + 1] = 'duration'
    fields[#fields + 1] = int(duration == 0 and mine or duration * 0.8 + mine * 0.2)
  end
else
  local allowance = redis.call('HGET', KEYS[1], 'allowance')
  use_allowance(allowance, -held_tokens)
  if kept > 0 and not values[13] then use_allowance(allowance, kept) end
end
local row, own_ends
if values[11] then
  correct_tokens(KEYS[7], number_of(values[10]), kept - (values[12] or values[11]), now)
  row = correct_row(fields, KEYS[4], account, lane, number_of(values[10]), kept - values[11], now, true)
  if lane == 'interactive' then
    own_ends = number_of(account[6]) + 1
    fields[#fields + 1] = 'ends:own'
    fields[#fields + 1] = int(own_ends)
  end
end
if #fields > 0 then redis.call('HSET', KEYS[4], unpack(fields)) end
if row and row.shift ~= 0 and row.ends % ENDS == 0 then
  move_waiting(KEYS[11], tag .. lane .. ':prioritized', tag .. 'r:', row)
end
if own_ends and own_ends >= GROUP then
  note_group(KEYS[4], 'own', own_ends, now, has_waiting(KEYS[11], tag .. lane .. ':prioritized'))
end
local lane_ends = redis.call('HINCRBY', KEYS[9], 'ends:lane', '1')
if lane_ends >= GROUP then
  note_group(KEYS[9], 'lane', lane_ends, now, redis.call('EXISTS', tag .. lane .. ':prioritized', tag .. lane .. ':wait') > 0)
end

if not settles and status ~= 'completed' then forget_idempotency(KEYS[1], id) end
if settles then redis.call('XADD', KEYS[6], '*', 's', settlement) end
if ARGV[5] ~= '' then redis.call('XADD', tag .. 'notices', 'MAXLEN', '~', NOTICES_MAX, '*', 'd', ARGV[5]) end
if is_sampled and completion + 0 > 0 then
  local mean = tonumber(redis.call('GET', KEYS[8])) or completion
  redis.call('SET', KEYS[8], int(mean * 0.7 + completion * 0.3), 'PX', MEAN_LIFETIME_MS)
end
if settles and follows == '0' then
  redis.call('HSET', KEYS[1], 'state', 'done', 'status', status, 'sent', last_seq, 'finishedAt', now_text,
    'firstTokenAt', now_text)
else
  redis.call('HSET', KEYS[1], 'state', 'done', 'status', status, 'sent', last_seq, 'finishedAt', now_text)
end
if keeps_nothing then
  -- Nothing was charged that could be given back (void.lua).
  if not settles then redis.call('HSET', KEYS[1], 'unheard', '1') end
  keep_nothing(KEYS[1], stream, KEYS[10], id, now)
else
  redis.call('PEXPIRE', KEYS[1], retention)
end
return ended
