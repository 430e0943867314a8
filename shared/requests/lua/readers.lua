-- Longer than two renewals, see RENEW_READERS_MS in api/relay/hub.ts.
local READER_LEASE_MS = 15000

-- Makes an ingress a reader for as long as its lease: the text is published to its channel. Redis may have come back without
-- the channel, so a renewal adds it again.
local function lease_reader(record, channels, channel, lease_ms, ...)
  if not string.find(',' .. channels .. ',', ',' .. channel .. ',', 1, true) then
    redis.call('HSET', record, 'channels', channels == '' and channel or channels .. ',' .. channel)
  end
  redis.call('HSET', record, 'reader:' .. channel, int(now_ms() + tonumber(lease_ms)), ...)
end
