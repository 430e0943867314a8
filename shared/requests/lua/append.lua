-- Adds text to running requests' streams for deliveries that own them. A refused request does not stop the others.
-- KEYS of each request: record, stream
-- ARGV of each request: 1 short texts, each followed by a NUL: request id, fence, last sequence number, prompt tokens
-- (for a process that has to end the request), name of the claim ('': not compared), number of the
-- event before; 2 payload
-- Returns for each request 'ok', 'cancelled' (written, stop soon), 'superseded', 'missing' (no record), 'accepted'
-- (Redis lost the claim, perhaps has an earlier one), 'behind' with Redis's last sequence number (it lost text), or
-- 'failed' with the reason why Redis could not write.
-- Separates messages of several requests; no JSON text contains it (channels.ts).
local SEPARATOR = '\30'
local messages = {}

local function append(record, stream, texts, payload)
  local id, fence, last_seq, prompt, owner, follows = struct.unpack('ssssss', texts)
  local state, known_fence, channels, is_cancelled, sent_text, known_owner = unpack(
    redis.call('HMGET', record, 'state', 'fence', 'channels', 'cancel', 'lastSeq', 'owner'))
  if state == 'accepted' then return 'accepted' end
  if state ~= 'running' then return state and 'superseded' or 'missing' end
  if known_fence ~= fence then return known_fence + 0 < fence + 0 and 'accepted' or 'superseded' end
  if owner ~= '' and known_owner ~= owner then return 'superseded' end
  local sent, done = sent_text + 0, is_cancelled and 'cancelled' or 'ok'
  -- The text is already there: this repeats a call whose reply was lost.
  if sent >= last_seq + 0 then return done end
  if sent ~= follows + 0 then return 'behind ' .. sent_text end
  add_entry(stream, last_seq, payload, owner)
  if sent == 0 then
    redis.call('PEXPIRE', stream, redis.call('HGET', record, 'ttlMs'))
    redis.call('HSET', record, 'lastSeq', last_seq, 'firstTokenAt', int(now_ms()), 'prompt', prompt)
  else
    redis.call('HSET', record, 'lastSeq', last_seq)
  end
  local message = message_of(id, head_of(last_seq, owner), payload)
  for channel in string.gmatch(channels or '', '[^,]+') do
    messages[channel] = messages[channel] or {}
    table.insert(messages[channel], message)
  end
  return done
end

local outcomes = {}
for at = 1, #KEYS / 2 do
  local is_done, outcome = pcall(append, KEYS[2 * at - 1], KEYS[2 * at], ARGV[2 * at - 1], ARGV[2 * at])
  if not is_done then outcome = 'failed ' .. (type(outcome) == 'table' and outcome.err or tostring(outcome)) end
  outcomes[at] = outcome
end
for channel, list in pairs(messages) do
  redis.call('@PUBLISH@', channel, table.concat(list, SEPARATOR))
end
return outcomes
