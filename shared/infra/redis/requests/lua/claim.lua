-- A worker takes a request by itself, see claiming.lua.
-- KEYS 1 record, 2 body, 3 inflight, 4 account
-- ARGV 1 request id, 2 attempt, 3 lease in ms, 4 a name for this call: it may be sent again after a lost answer,
--      5 what the names of accounts begin with
local rows = {}
local claimed = claim_request(KEYS[1], KEYS[2], KEYS[3], ARGV[5], ARGV[1], ARGV[2], ARGV[3], ARGV[4], now_ms(), rows)
for _, owed in pairs(rows) do write_owed(owed) end
return claimed
