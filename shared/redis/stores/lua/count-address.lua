-- Counts a failed authentication of one address, unless the limit is reached (docs/spec.md#authentication).
-- KEYS 1 log; ARGV 1 request id, 2 limit
local now = now_ms()
local limit = tonumber(ARGV[2])
local count = count_of(KEYS[1], now)
if count >= limit then
  return { 'rpm', count, reset_of(KEYS[1], now), math.ceil(wait_for_place(KEYS[1], limit, now)) }
end
log_request(KEYS[1], ARGV[1], now)
return { 'admitted', count + 1, reset_of(KEYS[1], now), 0 }
