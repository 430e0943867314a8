-- Reads what a tenant has: the three numbers of its balance and of its budget, at one moment.
-- KEYS 1 account; ARGV 1 month. Returns ledger balance, pending and held micro-credits, then the budget's tokens likewise.
local values = redis.call('HMGET', KEYS[1], 'ledgerBalance', 'pending', 'held',
  'ledgerTokens:' .. ARGV[1], 'pendingTokens:' .. ARGV[1], 'heldTokens:' .. ARGV[1])
for index = 1, 6 do values[index] = values[index] or '' end
return values
