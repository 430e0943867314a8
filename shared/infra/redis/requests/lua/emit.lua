-- One entry of a request's stream, and the same text to every ingress that reads it. Publishing the text itself lets
-- the ingress write at once; a reader that misses a sequence number fills the gap from the stream.
-- `writer` names the attempt, so that a reader sees when another one's text follows; '' for whoever writes an end only.
local function message_of(id, head, payload)
  return id .. ' ' .. head .. '\n' .. payload
end

local function publish(channels, message)
  if not channels or channels == '' then return end
  -- Mostly one ingress reads.
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

-- Seldom, as most answers are whole ones: the end of a stream, or the next entry of it.
local function emit(stream, channels, id, last_seq, payload, ttl_ms, writer)
  add_entry(stream, last_seq, payload, writer)
  redis.call('PEXPIRE', stream, ttl_ms)
  publish(channels, message_of(id, head_of(last_seq, writer), payload))
end

-- A stream of one entry, head and payload, kept as plain text: an empty stream alone takes 4 KB of memory.
local function emit_whole(answer, channels, id, entry, ttl_ms)
  redis.call('SET', answer, entry, 'PX', ttl_ms)
  publish(channels, id .. ' ' .. entry)
end
