-- Adds text to the streams of running requests, to each whose attempt still owns it; one that is refused stops no other.
-- KEYS of each request: record, stream
-- ARGV of each request: 1 short texts, each before a NUL: request id, fence, last sequence number, prompt tokens, for whoever
--      has to end the request, name of the claim ('' not compared), sequence number of the event before, 2 payload
-- Returns for each request 'superseded', 'cancelled' (written, stop soon) or 'ok'; 'accepted' where Redis came back
-- without the claim, 'behind' with the last number it has where it came back without some of the text, and 'failed'
-- with the reason where Redis could not write it.
-- Between the messages of several requests, and ahead of them: no JSON text holds it (request-channels.ts splits them).
local SEPARATOR = '\30'
-- What each ingress is told.
local messages = {}

local function append(record, stream, texts, payload)
  local id, fence, last_seq, prompt, owner, follows = struct.unpack('ssssss', texts)
  local values = redis.call('HMGET', record, 'state', 'fence', 'channels', 'cancel', 'sent', 'owner')
  if values[1] == 'accepted' then return 'accepted' end
  if values[1] ~= 'running' or values[2] ~= fence then return 'superseded' end
  if owner ~= '' and values[6] ~= owner then return 'superseded' end
  local sent, done = values[5] + 0, values[4] and 'cancelled' or 'ok'
  -- Sent again after a lost acknowledgement: it is written already.
  if sent >= last_seq + 0 then return done end
  if sent ~= follows + 0 then return 'behind ' .. values[5] end
  add_entry(stream, last_seq, payload, owner)
  if sent == 0 then
    -- Longer than any request may take.
    redis.call('PEXPIRE', stream, redis.call('HGET', record, 'life'))
    redis.call('HSET', record, 'sent', last_seq, 'firstTokenAt', int(now_ms()), 'prompt', prompt)
  else
    redis.call('HSET', record, 'sent', last_seq)
  end
  local message = message_of(id, head_of(last_seq, owner), payload)
  for channel in string.gmatch(values[3] or '', '[^,]+') do
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
-- An ingress of an earlier version, which knows messages of one request only, takes the rest for another request's and
-- reads the streams instead.
for channel, list in pairs(messages) do
  redis.call('@PUBLISH@', channel, #list == 1 and list[1] or SEPARATOR .. ' ' .. table.concat(list, SEPARATOR))
end
return outcomes
