-- Ends a request, once: last entry to the stream, hold turned into a pending charge, settlement to the outbox, token
-- weight corrected, body deleted.
-- KEYS 1 record, 2 stream, 3 body, 4 inflight, 5 account, 6 pending, 7 outbox, 8 what the key's requests take,
--      9 mean completion, 10 lane statistics, 11 whole answer, 12 notices for webhooks, 13 the tenant's open requests,
--      14 line, 15 list before the line, 16 job, 17 active jobs, 18 jobs that may have stalled
-- ARGV 1 request id, 2 fence, 3 last sequence number, 4 payload, 5 status, 6 cost in micro-credits, 7 total tokens,
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

-- Ends the job as BullMQ's moveToFinished of the pinned version ends one that is not kept, and deletes the body. Where
-- another worker has the job by now, that one finds that the request has ended.
local function delete_body_and_job(body, job, active, stalled, id, lock)
  if lock == '' or redis.call('GET', job .. ':lock') ~= lock then
    redis.call('UNLINK', body)
    return
  end
  redis.call('LREM', active, -1, id)
  redis.call('SREM', stalled, id)
  redis.call('UNLINK', body, job, job .. ':lock')
end

local values = redis.call('HMGET', KEYS[1], 'state', 'fence', 'channels', 'billed', 'month', 'startedAt', 'hold', 'holdTokens', 'firstTokenAt', 'sent', 'allowance', 'owner',
  'unheard', 'acceptedAt', 'estimate', 'weight')
local ended = values[13] and 'unheard' or 'finished'
-- Redis came back without the claim.
if values[1] == 'accepted' then return 'accepted' end
if values[2] and values[2] ~= ARGV[2] then return 'superseded' end
if values[12] and ARGV[13] ~= '' and values[12] ~= ARGV[13] then return 'superseded' end
-- Sent again after a lost acknowledgement: it has happened.
if values[1] == 'done' then return ended end
if values[1] ~= 'running' then return values[1] or 'missing' end
if tonumber(values[10]) ~= tonumber(ARGV[14]) then return 'behind ' .. values[10] end
local now = now_ms()
local keeps_nothing = ARGV[10] == '0'
local answer_ms = keeps_nothing and READING_MS or ARGV[10]
local cost, tokens, completion, kept = tonumber(ARGV[6]), tonumber(ARGV[7]), tonumber(ARGV[8]), tonumber(ARGV[11])
if values[10] == '0' then
  emit_whole(KEYS[11], values[3], ARGV[1], ARGV[3], ARGV[4], answer_ms, ARGV[13])
else
  emit(KEYS[2], values[3], ARGV[1], ARGV[3], ARGV[4], answer_ms, ARGV[13])
end
delete_body_and_job(KEYS[3], KEYS[16], KEYS[17], KEYS[18], ARGV[1], ARGV[17])
redis.call('ZREM', KEYS[4], ARGV[1])
redis.call('ZREM', KEYS[13], ARGV[1])
-- Nobody pays for a request whose caller was told that it was not accepted.
local settlement = values[13] and '' or ARGV[9]
-- What was counted in the end may be more than was held. The account is charged only what it can pay and the overrun.
if values[4] == '1' and cost > number_of(values[7]) and redis.call('HEXISTS', KEYS[5], 'book') == 1 then
  local most = number_of(values[7]) + math.max(0, spendable(KEYS[5]) + tonumber(ARGV[12]))
  if cost > most then
    settlement = string.gsub(settlement, '"costMicro":%d+', '"costMicro":' .. int(most), 1)
    settlement = string.gsub(settlement, '"estimated":false', '"estimated":true', 1)
    cost = most
  end
end
local settles, is_sampled = settlement ~= '', string.byte(ARGV[1], -1) % SAMPLE == 0
if values[4] == '1' and settles then
  charge(KEYS[5], KEYS[6], ARGV[1], values[5], number_of(values[7]), number_of(values[8]), cost, tokens)
else
  free_holds(KEYS[1], KEYS[5])
end
if values[4] == '1' and is_sampled then
  local duration, mine = number_of(redis.call('HGET', KEYS[5], 'duration')), now - number_of(values[6])
  redis.call('HSET', KEYS[5], 'duration', int(duration == 0 and mine or duration * 0.8 + mine * 0.2))
elseif values[4] ~= '1' and kept > 0 and not values[13] then
  use_allowance(values[11], kept)
end
if not settles and ARGV[5] ~= 'completed' then forget_idempotency(KEYS[1], ARGV[1]) end
if settles then redis.call('XADD', KEYS[7], '*', 's', settlement) end
if ARGV[15] ~= '' then redis.call('XADD', KEYS[12], 'MAXLEN', '~', NOTICES_MAX, '*', 'd', ARGV[15]) end
if values[15] then
  correct_tokens(KEYS[8], number_of(values[14]), kept - tonumber(values[16] or values[15]))
  local row = correct_use(KEYS[5], ARGV[16], number_of(values[14]), kept - tonumber(values[15]), now, true)
  if row then move_waiting(KEYS[13], KEYS[14], string.sub(KEYS[1], 1, -#ARGV[1] - 1), row) end
  if ARGV[16] == 'interactive' then
    note_end(KEYS[5], 'own', now, function() return has_waiting(KEYS[13], KEYS[14]) end)
  end
end
if completion > 0 and is_sampled then
  local mean = tonumber(redis.call('GET', KEYS[9])) or completion
  redis.call('SET', KEYS[9], int(mean * 0.7 + completion * 0.3), 'PX', MEAN_LIFETIME_MS)
end
note_end(KEYS[10], 'lane', now, function()
  return redis.call('ZCARD', KEYS[14]) + redis.call('LLEN', KEYS[15]) > 0
end)
redis.call('HSET', KEYS[1], 'state', 'done', 'status', ARGV[5], 'sent', ARGV[3], 'finishedAt', int(now),
  'firstTokenAt', values[9] or (settles and int(now) or ''), 'hold', 0, 'holdTokens', 0)
if keeps_nothing then
  keep_nothing(KEYS[1], KEYS[2], KEYS[11], ARGV[1], now)
else
  redis.call('PEXPIRE', KEYS[1], ARGV[10])
end
return ended
