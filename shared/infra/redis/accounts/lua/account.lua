-- A tenant's balance in Redis is three numbers: `book` (from MongoDB, with its version), `pend` (finished, not yet
-- settled) and `held` (admitted, not yet finished), all in micro-credits. The monthly token budget has the same three,
-- by month: `bt:`, `pt:` and `ht:`. Spendable = book - pend - held.
local ALLOWANCE_MS = 2 * 86400000

local function number_of(value)
  return tonumber(value) or 0
end

-- Moves several counters of the account in one write: names and by how much, in turn.
local function move(account, ...)
  local changes, fields, write = { ... }, {}, {}
  for index = 1, #changes, 2 do fields[#fields + 1] = changes[index] end
  local values = redis.call('HMGET', account, unpack(fields))
  for index, field in ipairs(fields) do
    write[#write + 1] = field
    write[#write + 1] = int(number_of(values[index]) + changes[index * 2])
  end
  redis.call('HSET', account, unpack(write))
end

local function hold(account, month, micro, tokens)
  move(account, 'held', micro, 'ht:' .. month, tokens)
end

-- What one more request could take: micro-credits left when every hold and every pending charge is counted.
local function spendable(account)
  local values = redis.call('HMGET', account, 'book', 'pend', 'held')
  return number_of(values[1]) - number_of(values[2]) - number_of(values[3])
end

-- A finished request's hold becomes what it owes until its settlement is in the book.
local function charge(account, pending, id, month, held, held_tokens, micro, tokens)
  redis.call('HSET', pending, id, int(micro) .. ':' .. int(tokens) .. ':' .. month)
  move(account, 'held', -held, 'ht:' .. month, -held_tokens, 'pend', micro, 'pt:' .. month, tokens)
end

-- Takes tokens of a test request from its allowance. The record names it, because it is that of the day on which the
-- request was admitted: whoever ends the request on the next day must not look for it there.
local function use_allowance(allowance, tokens)
  if allowance and (tokens > 0 or redis.call('EXISTS', allowance) == 1) then
    redis.call('INCRBY', allowance, int(tokens))
    redis.call('PEXPIRE', allowance, ALLOWANCE_MS)
  end
end

-- Gives back everything an unfinished request holds: credits and budget, or the test allowance.
local function free_holds(record, account)
  local values = redis.call('HMGET', record, 'hold', 'holdTokens', 'month', 'billed', 'allowance')
  local tokens = number_of(values[2])
  if values[4] == '1' then
    hold(account, values[3], -number_of(values[1]), -tokens)
  else
    use_allowance(values[5], -tokens)
  end
end
