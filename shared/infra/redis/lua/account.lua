-- A tenant's balance in Redis is three numbers: `book` (from MongoDB, with its version), `pend` (finished, not yet
-- settled) and `held` (admitted, not yet finished), all in micro-credits. The monthly token budget has the same three,
-- by month: `bt:`, `pt:` and `ht:`. Spendable = book - pend - held.
local function number_of(value)
  return tonumber(value) or 0
end

local function hold(account, month, micro, tokens)
  redis.call('HINCRBY', account, 'held', int(micro))
  redis.call('HINCRBY', account, 'ht:' .. month, int(tokens))
end

local function release(account, month, micro, tokens)
  hold(account, month, -micro, -tokens)
end

-- What one more request could take: micro-credits left when every hold and every pending charge is counted.
local function spendable(account)
  local values = redis.call('HMGET', account, 'book', 'pend', 'held')
  return number_of(values[1]) - number_of(values[2]) - number_of(values[3])
end

-- A finished request owes `micro` and `tokens` until its settlement is in the book.
local function charge(account, pending, id, month, micro, tokens)
  if redis.call('HSETNX', pending, id, int(micro) .. ':' .. int(tokens) .. ':' .. month) == 0 then return end
  redis.call('HINCRBY', account, 'pend', int(micro))
  redis.call('HINCRBY', account, 'pt:' .. month, int(tokens))
end

-- Gives back everything an unfinished request holds: credits and budget, or the test allowance.
local function free_holds(record, account, allowance)
  local values = redis.call('HMGET', record, 'hold', 'holdTokens', 'month', 'billed')
  local tokens = number_of(values[2])
  if values[4] == '1' then
    release(account, values[3], number_of(values[1]), tokens)
  elseif tokens > 0 and redis.call('EXISTS', allowance) == 1 then
    redis.call('DECRBY', allowance, int(tokens))
  end
end
