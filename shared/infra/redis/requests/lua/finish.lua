-- Ends a request, once: last entry to the stream, hold turned into a pending charge, settlement to the outbox, token
-- weight corrected, body deleted.
-- KEYS 1 record, 2 stream, 3 body, 4 inflight, 5 account, 6 pending, 7 outbox, 8 what the key's requests take,
--      9 mean completion, 10 lane statistics, 11 whole answer, 12 notices for webhooks, 13 the tenant's open requests,
--      14 line, 15 list before the line, 16 job, 17 active jobs
-- ARGV 1 request id, 2 fence, 3 last sequence number, 4 payload, behind its head where no event was before, 5 status, 6 cost in micro-credits, 7 total tokens,
--      8 completion tokens, 9 settlement ('' none), 10 retention in ms (0 keeps nothing), 11 tokens that stay in the key's window and in
--      the test allowance, 12 micro-credits by which an account may be overdrawn, 13 name of the claim ('' not compared), 14 sequence number
--      of the event before, 15 notice for webhooks ('' none), 16 lane,
--      17 lock of the job that ends with the request ('' none)
-- Returns 'finished', 'unheard' where nobody pays for it, or the state found when this attempt no longer owns the request; 'behind' with the last number
-- that Redis has where it came back without some of the text.
local MEAN_LIFETIME_MS = 86400000
-- Averages need not hear of every request: a sample of them spares writes.
local SAMPLE = 8
-- While MongoDB is away they wait; about so many.
local NOTICES_MAX = 100000

-- They are read often, and a local name is found sooner.
local KEYS, ARGV = KEYS, ARGV
local values = redis.call('HMGET', KEYS[1], 'state', 'fence', 'sent', 'owner', 'channels', 'billed', 'month', 'hold',
  'holdTokens', 'acceptedAt', 'estimate', 'weight', 'unheard')
local ended = values[13] and 'unheard' or 'finished'
-- Redis came back without the claim.
if values[1] == 'accepted' then return 'accepted' end
if values[2] and values[2] ~= ARGV[2] then return 'superseded' end
if values[4] and ARGV[13] ~= '' and values[4] ~= ARGV[13] then return 'superseded' end
-- Sent again after a lost acknowledgement: it has happened.
if values[1] == 'done' then return ended end
if values[1] ~= 'running' then return values[1] or 'missing' end
if values[3] ~= ARGV[14] then return 'behind ' .. values[3] end
local now = now_ms()
local now_text, keeps_nothing, is_billed = int(now), ARGV[10] == '0', values[6] == '1'
local answer_ms = keeps_nothing and READING_MS or ARGV[10]
local cost, tokens, kept = ARGV[6] + 0, ARGV[7] + 0, ARGV[11] + 0
local held, held_tokens = number_of(values[8]), number_of(values[9])
if ARGV[14] == '0' then
  emit_whole(KEYS[11], values[5], ARGV[1], ARGV[4], answer_ms)
else
  emit(KEYS[2], values[5], ARGV[1], ARGV[3], ARGV[4], answer_ms, ARGV[13])
end
-- Ends the job as BullMQ's moveToFinished of the pinned version ends one that is not kept; an id that is left among those
-- that may have stalled is passed over. Where another worker has the job by now, that one finds that the request has ended.
local lock = KEYS[16] .. ':lock'
if ARGV[17] ~= '' and redis.call('GET', lock) == ARGV[17] then
  redis.call('LREM', KEYS[17], -1, ARGV[1])
  redis.call('UNLINK', KEYS[3], KEYS[16], lock)
else
  redis.call('UNLINK', KEYS[3])
end
redis.call('ZREM', KEYS[4], ARGV[1])
redis.call('ZREM', KEYS[13], ARGV[1])
-- Nobody pays for a request whose caller was told that it was not accepted.
local settlement = values[13] and '' or ARGV[9]
-- What was counted in the end may be more than was held. The account is charged only what it can pay and the overrun.
if is_billed and cost > held and redis.call('HEXISTS', KEYS[5], 'book') == 1 then
  local most = held + math.max(0, spendable(KEYS[5]) + tonumber(ARGV[12]))
  if cost > most then
    settlement = string.gsub(settlement, '"costMicro":%d+', '"costMicro":' .. int(most), 1)
    settlement = string.gsub(settlement, '"estimated":false', '"estimated":true', 1)
    cost = most
  end
end
local settles, is_sampled = settlement ~= '', string.byte(ARGV[1], -1) % SAMPLE == 0

-- The account is read once and written once: what is owed, what the tenant takes, its turns and its pace.
local names = row_names(ARGV[16])
if is_billed then
  names[8], names[9] = 'held', 'ht:' .. values[7]
  if settles then names[10], names[11] = 'pend', 'pt:' .. values[7] end
  if is_sampled then names[#names + 1] = 'duration' end
end
local account, fields = redis.call('HMGET', KEYS[5], unpack(names)), {}
if is_billed then
  -- The hold becomes what is owed until its settlement is in the book.
  fields = { 'held', int(number_of(account[8]) - held), names[9], int(number_of(account[9]) - held_tokens) }
  if settles then
    redis.call('HSET', KEYS[6], ARGV[1], int(cost) .. ':' .. ARGV[7] .. ':' .. values[7])
    fields[5], fields[6] = 'pend', int(number_of(account[10]) + cost)
    fields[7], fields[8] = names[11], int(number_of(account[11]) + tokens)
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
  correct_tokens(KEYS[8], number_of(values[10]), kept - (values[12] or values[11]))
  row = correct_row(fields, KEYS[5], account, ARGV[16], number_of(values[10]), kept - values[11], now, true)
  if ARGV[16] == 'interactive' then
    own_ends = number_of(account[7]) + 1
    fields[#fields + 1] = 'ends:own'
    fields[#fields + 1] = int(own_ends)
  end
end
if #fields > 0 then redis.call('HSET', KEYS[5], unpack(fields)) end
if row and row.shift ~= 0 and row.ends % ENDS == 0 then
  move_waiting(KEYS[13], KEYS[14], string.sub(KEYS[1], 1, -#ARGV[1] - 1), row)
end
if own_ends and own_ends >= GROUP then
  note_group(KEYS[5], 'own', own_ends, now, has_waiting(KEYS[13], KEYS[14]))
end
local lane_ends = redis.call('HINCRBY', KEYS[10], 'ends:lane', 1)
if lane_ends >= GROUP then
  note_group(KEYS[10], 'lane', lane_ends, now, redis.call('ZCARD', KEYS[14]) + redis.call('LLEN', KEYS[15]) > 0)
end

if not settles and ARGV[5] ~= 'completed' then forget_idempotency(KEYS[1], ARGV[1]) end
if settles then redis.call('XADD', KEYS[7], '*', 's', settlement) end
if ARGV[15] ~= '' then redis.call('XADD', KEYS[12], 'MAXLEN', '~', NOTICES_MAX, '*', 'd', ARGV[15]) end
if is_sampled and tonumber(ARGV[8]) > 0 then
  local mean = tonumber(redis.call('GET', KEYS[9])) or ARGV[8]
  redis.call('SET', KEYS[9], int(mean * 0.7 + ARGV[8] * 0.3), 'PX', MEAN_LIFETIME_MS)
end
if settles and ARGV[14] == '0' then
  redis.call('HSET', KEYS[1], 'state', 'done', 'status', ARGV[5], 'sent', ARGV[3], 'finishedAt', now_text,
    'firstTokenAt', now_text)
else
  redis.call('HSET', KEYS[1], 'state', 'done', 'status', ARGV[5], 'sent', ARGV[3], 'finishedAt', now_text)
end
if keeps_nothing then
  -- Nothing was charged that could be given back (void.lua).
  if not settles then redis.call('HSET', KEYS[1], 'unheard', '1') end
  keep_nothing(KEYS[1], KEYS[2], KEYS[11], ARGV[1], now)
else
  redis.call('PEXPIRE', KEYS[1], ARGV[10])
end
return ended
