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

-- Takes tokens of a test request from its allowance. The record names it, because it is that of the day on which the
-- request was admitted: whoever ends the request on the next day must not look for it there.
local function use_allowance(allowance, tokens)
  if allowance and (tokens > 0 or redis.call('EXISTS', allowance) == 1) then
    redis.call('INCRBY', allowance, int(tokens))
    redis.call('PEXPIRE', allowance, ALLOWANCE_MS)
  end
end

-- What is asked ahead of need takes at most this part of what is left, so that the holds of running requests never
-- refuse a neighbour (docs/decisions/0039).
local SHARE = 16
local UNLIMITED = 1e15

-- How much more of one bound a request gets: what it must have, as far as there is so much, and what it asks ahead. `over`
-- is how far it may go beyond the bound.
local function more_of(left, must, ahead, over)
  if left < must then return math.max(0, math.min(must, left + over)) end
  return math.max(must, math.min(ahead, math.floor(left / SHARE)))
end

-- The fields of a record that say what its request holds, and of what.
local HOLDS = { 'hold', 'holdTokens', 'month', 'billed', 'allowance', 'limit' }

-- Raises what a request holds of credits, budget or test allowance; `values` are those of HOLDS. `asked` has what it must
-- hold and would like to hold in all, and how far it may overrun where nobody else holds anything: a positive balance
-- always admits one. Returns what it holds then, micro-credits and tokens, -1 where it is not bounded, and both as the
-- record is to have them: nothing where they stay.
local function more_held(account, values, asked)
  local micro, tokens, limit = number_of(values[1]), number_of(values[2]), tonumber(values[6])
  local must, ahead = math.max(0, asked.must_tokens - tokens), math.max(0, asked.ahead_tokens - tokens)
  if values[4] ~= '1' then
    local used = number_of(values[5] and redis.call('GET', values[5]))
    local more = more_of((limit or UNLIMITED) - used, must, ahead, used <= tokens and asked.over_tokens or 0)
    if more <= 0 then return -1, tokens end
    use_allowance(values[5], more)
    return -1, tokens + more, micro, tokens + more
  end
  local reserved = 'ht:' .. values[3]
  local owed = redis.call('HMGET', account, 'book', 'pend', 'held', 'bt:' .. values[3], 'pt:' .. values[3], reserved)
  local held, held_tokens = number_of(owed[3]), number_of(owed[6])
  local more_micro = more_of(number_of(owed[1]) - number_of(owed[2]) - held, math.max(0, asked.must_micro - micro),
    math.max(0, asked.ahead_micro - micro), held <= micro and asked.over_micro or 0)
  local left = limit and limit - number_of(owed[4]) - number_of(owed[5]) - held_tokens or UNLIMITED
  local more_tokens = more_of(left, must, ahead, held_tokens <= tokens and asked.over_tokens or 0)
  if more_micro <= 0 and more_tokens <= 0 then return micro, limit and tokens or -1 end
  redis.call('HSET', account, 'held', int(held + more_micro), reserved, int(held_tokens + more_tokens))
  return micro + more_micro, limit and tokens + more_tokens or -1, micro + more_micro, tokens + more_tokens
end

-- The same, for a record that nothing else is written to. Returns what the request holds then.
local function raise_holds(record, account, asked)
  local micro, tokens, hold_micro, hold_tokens = more_held(account, redis.call('HMGET', record, unpack(HOLDS)), asked)
  if hold_micro then redis.call('HSET', record, 'hold', int(hold_micro), 'holdTokens', int(hold_tokens)) end
  return micro, tokens
end

-- A finished request's hold becomes what it owes until its settlement is in the book.
local function charge(account, pending, id, month, held, held_tokens, micro, tokens)
  redis.call('HSET', pending, id, int(micro) .. ':' .. int(tokens) .. ':' .. month)
  move(account, 'held', -held, 'ht:' .. month, -held_tokens, 'pend', micro, 'pt:' .. month, tokens)
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
