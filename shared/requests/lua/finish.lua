-- Ends a request, once: writes the stream's last entry, a pending charge for the hold, and the settlement record in the
-- outbox, corrects the token use, deletes body and job.
-- KEYS 1 record, 2 body, 3 inflight, 4 account, 5 pending charges, 6 outbox, 7 token use of the key, 8 mean completion
-- of the key, 9 statistics of the queue, 10 whole answer, 11 open requests of the tenant, 12 job, 13 active jobs, and
-- of a repeated end 14 to 19 the last of those of restore_request (restore-request.lua)
-- ARGV 1 request id, 2 short texts, each followed by a NUL, which is faster than arguments: see the locals below,
-- 3 payload, behind its head if the stream has no entry, 4 settlement record, 5 notice for webhooks ('': none),
-- and of a repeated end with all the text, in case Redis lost the request: from 6 on restore_request's
-- Returns 'finished', or 'charged' with micro-credits if the account could not pay all; 'unbilled' if nobody pays;
-- 'behind' with Redis's last sequence number if it lost text; otherwise the found state: another delivery owns it.
local MEAN_LIFETIME_MS = 86400000
-- One request in this many counts for the averages, which saves writes.
local SAMPLE = 8
-- About how many notices may wait while MongoDB is away.
local NOTICES_MAX = 100000

-- Local names are found sooner than global ones.
local KEYS, ARGV = KEYS, ARGV
-- `kept`: tokens that stay in the key's window and the test allowance; `unpaid`: tokens of providers' work that nobody
-- pays for; `overdraft`: micro-credits; `follows`: number of the event before; `retention` in ms (0 keeps nothing);
-- `owner` names the claim and locks its job ('': not compared); `ends_job`: 1 if the job ends with the request.
local cost, tokens, completion, kept, unpaid, overdraft, fence, last_seq, follows, status, retention, owner, queue,
  ends_job = struct.unpack('ssssssssssssss', ARGV[2])
cost, kept = cost + 0, kept + 0
local id = ARGV[1]
if ARGV[6] and follows == '0' then
  local keys = { KEYS[1], tag_of(KEYS[3]) .. 's:' .. id, KEYS[10], unpack(KEYS, 14) }
  restore_ended(id, keys, fence, owner, queue, retention, { unpack(ARGV, 6) })
end
local state, known_fence, sent, known_owner, channels, known_billed, month, hold_text, hold_tokens, accepted_at, estimate,
  weight, is_unbilled, own_retention, on_disconnect = unpack(redis.call('HMGET', KEYS[1], 'state', 'fence', 'lastSeq', 'owner',
  'channels', 'billed', 'month', 'hold', 'holdTokens', 'acceptedAt', 'estimate', 'weight', 'unbilled', 'retentionMs', 'onDisconnect'))
-- Redis came back without the claim: accepted, or with that of an earlier delivery.
if state == 'accepted' then return 'accepted' end
if known_fence and known_fence ~= fence then
  return state == 'running' and known_fence + 0 < fence + 0 and 'accepted' or 'superseded'
end
if known_owner and owner ~= '' and known_owner ~= owner then return 'superseded' end
-- An answer from MongoDB (restore-answer.lua) says nothing of this delivery's charge.
if state == 'done' and not known_fence then return 'missing' end
-- The call was repeated after its answer was lost.
local ended = is_unbilled and 'unbilled' or 'finished'
local charged = state == 'done' and redis.call('HGET', KEYS[1], 'charged')
if state == 'done' then return charged and 'charged ' .. charged or ended end
if state ~= 'running' then return state or 'missing' end
if sent ~= follows then return 'behind ' .. sent end
local now = now_ms()
local now_text, keeps_nothing, is_billed = int(now), retention == '0', known_billed == '1'
local answer_ms = keeps_nothing and READING_MS or retention
local held, held_tokens = number_of(hold_text), number_of(hold_tokens)
-- Most ends need no name made from it.
local tag = tag_of(KEYS[3])
local stream = tag .. 's:' .. id
if follows == '0' then
  emit_whole(KEYS[10], channels, id, ARGV[3], answer_ms)
else
  emit(stream, channels, id, last_seq, ARGV[3], answer_ms, owner)
end
-- Ends the job as the pinned BullMQ's moveToFinished ends one that is not kept. BullMQ skips the id where it stays in
-- its set of possibly stalled jobs. Another worker with the job finds that the request has ended.
local lock = KEYS[12] .. ':@lock@'
if ends_job == '1' and redis.call('GET', lock) == owner then
  redis.call('LREM', KEYS[13], '-1', id)
  redis.call('UNLINK', KEYS[2], KEYS[12], lock)
else
  redis.call('UNLINK', KEYS[2])
end
redis.call('ZREM', KEYS[3], id)
redis.call('ZREM', KEYS[11], id)
-- Its caller was told that the request was not accepted.
local settlement = is_unbilled and '' or ARGV[4]
-- The final count may exceed the hold, but the charge only what the account can pay, plus the overdraft.
if is_billed and cost > held and redis.call('HEXISTS', KEYS[4], 'ledgerBalance') == 1 then
  local most = held + math.max(0, spendable(KEYS[4]) + overdraft)
  if cost > most then
    settlement = string.gsub(settlement, '"costMicro":%d+', '"costMicro":' .. int(most), 1)
    settlement = string.gsub(settlement, '"estimated":false', '"estimated":true', 1)
    cost = most
    -- The worker remembers this amount, because Redis may come back without this record.
    if settlement ~= '' then
      ended = 'charged ' .. int(most)
      redis.call('HSET', KEYS[1], 'charged', int(most))
    end
  end
end
-- A restored or replayed request has no estimate, and says nothing about durations.
local settles, is_sampled = settlement ~= '', estimate and string.byte(id, -1) % SAMPLE == 0

-- One read and one write of the account: pending charge, token window, tags and throughput.
local names = queue_fields(queue)
local queue_field_count = #names
if is_billed then
  names[queue_field_count + 1], names[queue_field_count + 2] = 'held', 'heldTokens:' .. month
  if settles then names[queue_field_count + 3], names[queue_field_count + 4] = 'pending', 'pendingTokens:' .. month end
  if is_sampled then names[#names + 1] = 'duration' end
end
local account, fields = redis.call('HMGET', KEYS[4], unpack(names)), {}
if is_billed then
  -- The hold becomes a pending charge until its settlement is in the ledger balance.
  local all_held, all_held_tokens, pending, pending_tokens = unpack(account, queue_field_count + 1)
  put(fields, 'held', int(number_of(all_held) - held))
  put(fields, 'heldTokens:' .. month, int(number_of(all_held_tokens) - held_tokens))
  if settles then
    redis.call('HSET', KEYS[5], id, int(cost) .. ':' .. tokens .. ':' .. month)
    put(fields, 'pending', int(number_of(pending) + cost))
    put(fields, 'pendingTokens:' .. month, int(number_of(pending_tokens) + tokens))
  end
  if is_sampled then
    local duration, mine = number_of(account[#names]), now - number_of(redis.call('HGET', KEYS[1], 'startedAt'))
    put(fields, 'duration', int(duration == 0 and mine or duration * 0.8 + mine * 0.2))
  end
else
  local allowance = redis.call('HGET', KEYS[1], 'allowance')
  use_allowance(allowance, -held_tokens)
  if kept > 0 and not is_unbilled then use_allowance(allowance, kept) end
end
local period, own_ends
-- A replayed request has no estimate: its tokens stay as admission counted them (requeue.lua).
if estimate then
  accepted_at = number_of(accepted_at)
  correct_tokens(KEYS[7], accepted_at, kept - (weight or estimate), now)
  period = correct_finish_tag(fields, KEYS[4], account, queue, accepted_at, kept - estimate, now, true)
  if queue == 'interactive' then
    own_ends = number_of(account[queue_field_count]) + 1
    put(fields, 'ends:own', int(own_ends))
  end
end
if unpaid ~= '0' and not is_unbilled then
  local before = unpaid_in_hour(redis.call('HGET', KEYS[4], 'unpaid'), now)
  put(fields, 'unpaid', int(math.floor(now / HOUR_MS)) .. ' ' .. int(before + unpaid))
end
if #fields > 0 then redis.call('HSET', KEYS[4], unpack(fields)) end
if period and period.shift ~= 0 and period.ends % ENDS == 0 then
  move_waiting(KEYS[11], tag .. queue .. ':@prioritized@', tag .. 'r:', period)
end
if own_ends and own_ends >= GROUP then
  record_throughput(KEYS[4], 'own', own_ends, now, has_waiting(KEYS[11], tag .. queue .. ':@prioritized@'))
end
local queue_ends = redis.call('HINCRBY', KEYS[9], 'ends:queue', '1')
if queue_ends >= GROUP then
  local is_busy = redis.call('EXISTS', tag .. queue .. ':@prioritized@', tag .. queue .. ':@wait@') > 0
  record_throughput(KEYS[9], 'queue', queue_ends, now, is_busy)
end

if not settles and status ~= 'completed' then forget_idempotency(KEYS[1], id) end
if settles then redis.call('XADD', KEYS[6], '*', 's', settlement) end
if ARGV[5] ~= '' then redis.call('XADD', tag .. 'notices', 'MAXLEN', '~', NOTICES_MAX, '*', 'd', ARGV[5]) end
if is_sampled and completion + 0 > 0 then
  local mean = tonumber(redis.call('GET', KEYS[8])) or completion
  redis.call('SET', KEYS[8], int(mean * 0.7 + completion * 0.3), 'PX', MEAN_LIFETIME_MS)
end
if settles and follows == '0' then
  redis.call('HSET', KEYS[1], 'state', 'done', 'status', status, 'lastSeq', last_seq, 'finishedAt', now_text,
    'firstTokenAt', now_text)
else
  redis.call('HSET', KEYS[1], 'state', 'done', 'status', status, 'lastSeq', last_seq, 'finishedAt', now_text)
end
-- No charge was made that could be given back (void.lua).
if keeps_nothing and not settles then redis.call('HSET', KEYS[1], 'unbilled', '1') end
leave_end(tag, KEYS[4], id, KEYS[1], stream, KEYS[10], retention, own_retention, on_disconnect, now)
return ended
