-- A tenant's balance in Redis is three numbers: `book` (from MongoDB, with its version), `pend` (finished, not yet
-- settled) and `held` (admitted, not yet finished), all in micro-credits. The monthly token budget has the same three,
-- by month: `bt:`, `pt:` and `ht:`. Spendable = book - pend - held.
local ALLOWANCE_MS = 2 * 86400000

-- Of a number as Redis has it. An operation reads a text once, and tonumber twice.
local function number_of(value)
  return value and value ~= '' and value + 0 or 0
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

-- Seldom: what one more request could take, micro-credits left when every hold and every pending charge is counted.
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

-- What bounds the holds of a tenant's requests, for more_held. One row serves all requests that a call looks at.
local function read_owed(account, month)
  local reserved = 'ht:' .. month
  local values = redis.call('HMGET', account, 'book', 'pend', 'held', 'bt:' .. month, 'pt:' .. month, reserved)
  return {
    account = account, month = month, reserved = reserved, is_changed = false,
    left = number_of(values[1]) - number_of(values[2]), held = number_of(values[3]),
    used_tokens = number_of(values[4]) + number_of(values[5]), held_tokens = number_of(values[6]),
  }
end

local function write_owed(owed)
  if not owed.is_changed then return end
  redis.call('HSET', owed.account, 'held', int(owed.held), owed.reserved, int(owed.held_tokens))
  owed.is_changed = false
end

-- The row of an account in `rows`, which has one of each; at the turn of a month it changes.
local function owed_in(rows, account, month)
  local owed = rows[account]
  if owed and owed.month == month then return owed end
  if owed then write_owed(owed) end
  rows[account] = read_owed(account, month)
  return rows[account]
end

-- Raises what a request holds of credits and budget (`limit`, nil where there is none), micro-credits and tokens. It must
-- hold so much and would like to hold so much in all, and may overrun where nobody else holds anything: a positive balance
-- always admits one. Returns what it holds then.
local function more_held(owed, micro, tokens, limit, must, ahead, over)
  local more_micro = more_of(owed.left - owed.held, math.max(0, must.micro - micro), math.max(0, ahead.micro - micro),
    owed.held <= micro and over.micro or 0)
  local left = limit and limit - owed.used_tokens - owed.held_tokens or UNLIMITED
  local more_tokens = more_of(left, math.max(0, must.tokens - tokens), math.max(0, ahead.tokens - tokens),
    owed.held_tokens <= tokens and over.tokens or 0)
  if more_micro <= 0 and more_tokens <= 0 then return micro, tokens end
  owed.held, owed.held_tokens, owed.is_changed = owed.held + more_micro, owed.held_tokens + more_tokens, true
  return micro + more_micro, tokens + more_tokens
end

-- Seldom: the same for the tokens of a test request, which are of an allowance.
local function more_allowed(allowance, tokens, limit, must, ahead, over)
  local used = number_of(allowance and redis.call('GET', allowance))
  local more = more_of((limit or UNLIMITED) - used, math.max(0, must.tokens - tokens), math.max(0, ahead.tokens - tokens),
    used <= tokens and over.tokens or 0)
  if more <= 0 then return tokens end
  use_allowance(allowance, more)
  return tokens + more
end

-- Seldom: gives back everything that an unfinished request holds: credits and budget, or the test allowance.
local function free_holds(record, account)
  local values = redis.call('HMGET', record, 'hold', 'holdTokens', 'month', 'billed', 'allowance')
  local tokens = number_of(values[2])
  if values[4] == '1' then
    hold(account, values[3], -number_of(values[1]), -tokens)
  else
    use_allowance(values[5], -tokens)
  end
end
