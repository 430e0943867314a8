-- Claims a request whose job was taken without a claim; see claiming.lua for the reply.
-- KEYS 1 record, 2 body, 3 inflight, 4 account; ARGV 1 request id, 2 fence, 3 lease in ms, 4 a name for this call,
-- which may be sent again after a lost reply, 5 how names of accounts begin, 6 1 if the worker has the body: Redis may
-- have lost it
local call = { inflight = KEYS[3], accounts = ARGV[5], lease_ms = ARGV[3], now = now_ms(), holds = {} }
call.has_body = ARGV[6] == '1'
local claimed = claim_request(call, ARGV[1], KEYS[1], KEYS[2], ARGV[2], ARGV[4])
for _, holds in pairs(call.holds) do save_holds(holds) end
return claimed
