-- One entry of a request's stream, and the same text to every ingress that reads it. Publishing the text itself lets
-- the ingress write at once; a reader that misses a sequence number fills the gap from the stream.
local function publish(channels, id, last_seq, payload)
  for channel in string.gmatch(channels or '', '[^,]+') do
    redis.call('@PUBLISH@', channel, id .. ' ' .. last_seq .. '\n' .. payload)
  end
end

local function emit(stream, channels, id, last_seq, payload, ttl_ms)
  redis.call('XADD', stream, last_seq .. '-0', 'd', payload)
  redis.call('PEXPIRE', stream, ttl_ms)
  publish(channels, id, last_seq, payload)
end

-- A stream of one entry, kept as plain text: an empty stream alone takes 4 KB of memory.
local function emit_whole(answer, channels, id, last_seq, payload, ttl_ms)
  redis.call('SET', answer, last_seq .. '\n' .. payload, 'PX', ttl_ms)
  publish(channels, id, last_seq, payload)
end
