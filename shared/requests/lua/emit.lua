-- Adds one entry to a request's stream and publishes the same text to every ingress that reads it, so that the ingress
-- need not read the stream: only a reader that misses a sequence number does. `writer` names the delivery's claim, so
-- that a reader notices text of another delivery; it is '' for an end that no delivery writes.
local function message_of(id, head, payload)
  return id .. ' ' .. head .. '\n' .. payload
end

local function publish(channels, message)
  if not channels or channels == '' then return end
  -- Usually one ingress reads.
  if not string.find(channels, ',', 1, true) then
    redis.call('@PUBLISH@', channels, message)
    return
  end
  for channel in string.gmatch(channels, '[^,]+') do redis.call('@PUBLISH@', channel, message) end
end

local function head_of(last_seq, writer)
  return writer == '' and last_seq or last_seq .. ' ' .. writer
end

local function add_entry(stream, last_seq, payload, writer)
  if writer == '' then
    redis.call('XADD', stream, last_seq .. '-0', 'd', payload)
  else
    redis.call('XADD', stream, last_seq .. '-0', 'd', payload, 'w', writer)
  end
end

-- An entry of a stream, usually its last: most answers are sent whole.
local function emit(stream, channels, id, last_seq, payload, ttl_ms, writer)
  add_entry(stream, last_seq, payload, writer)
  redis.call('PEXPIRE', stream, ttl_ms)
  publish(channels, message_of(id, head_of(last_seq, writer), payload))
end

-- Stores an answer of one entry as plain text, head and payload: a stream takes 4 KB of memory even when empty.
local function emit_whole(answer, channels, id, entry, ttl_ms)
  redis.call('SET', answer, entry, 'PX', ttl_ms)
  publish(channels, id .. ' ' .. entry)
end
