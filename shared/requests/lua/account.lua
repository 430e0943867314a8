-- A balance is three numbers in micro-credits: `ledgerBalance` (from MongoDB, with its version), `pending` (finished,
-- not settled) and `held` (admitted, not finished). Spendable = ledgerBalance - pending - held. The token budget has
-- the same for each month: `ledgerTokens:`, `pendingTokens:`, `heldTokens:`.
local ALLOWANCE_MS = 2 * 86400000
local HOUR_MS = 3600000

-- Reads a text of Redis; none is 0. `+ 0` reads the text once, tonumber twice.
local function number_of(value)
  return value and value ~= '' and value + 0 or 0
end

-- Takes names and differences in turn, for one write.
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
  move(account, 'held', micro, 'heldTokens:' .. month, tokens)
end

local function spendable(account)
  local values = redis.call('HMGET', account, 'ledgerBalance', 'pending', 'held')
  return number_of(values[1]) - number_of(values[2]) - number_of(values[3])
end

-- Takes tokens from a test allowance, or gives them back if negative. The record names the allowance: it is that of the
-- day of admission, even if the request ends on the next day.
local function use_allowance(allowance, tokens)
  if allowance and (tokens > 0 or redis.call('EXISTS', allowance) == 1) then
    redis.call('INCRBY', allowance, int(tokens))
    redis.call('PEXPIRE', allowance, ALLOWANCE_MS)
  end
end

-- Tokens that providers worked on for a tenant in this hour (UTC) and nobody pays for. `noted`: an hour and its tokens.
local function unpaid_in_hour(noted, now)
  local hour, tokens = string.match(noted or '', '^(%d+) (%d+)$')
  return hour and hour + 0 == math.floor(now / HOUR_MS) and tokens + 0 or 0
end

-- A request may hold ahead of need at most 1/16 of what is left, so that holds do not refuse other requests
-- (docs/decisions/0009-holds-and-ledger.md).
local SHARE = 16
local UNLIMITED = 1e15

-- Grants within one bound: `required`, if that is left, or `preferred`, ahead of need. `overdraft` may exceed the
-- bound.
local function more_of(left, required, preferred, overdraft)
  if left < required then return math.max(0, math.min(required, left + overdraft)) end
  return math.max(required, math.min(preferred, math.floor(left / SHARE)))
end

-- Bounds for raise_hold; a script reads them once per tenant. `left` is false if Redis lacks the ledger balance.
local function load_holds(account, month)
  local reserved = 'heldTokens:' .. month
  local values = redis.call('HMGET', account, 'ledgerBalance', 'pending', 'held',
    'ledgerTokens:' .. month, 'pendingTokens:' .. month, reserved)
  return {
    account = account, month = month, reserved = reserved, is_changed = false,
    left = values[1] and number_of(values[1]) - number_of(values[2]), held = number_of(values[3]),
    used_tokens = number_of(values[4]) + number_of(values[5]), held_tokens = number_of(values[6]),
  }
end

local function save_holds(holds)
  if not holds.is_changed then return end
  redis.call('HSET', holds.account, 'held', int(holds.held), holds.reserved, int(holds.held_tokens))
  holds.is_changed = false
end

-- Read on first use. `all` has one month per account: another month's holds are written first.
local function holds_of(all, account, month)
  local holds = all[account]
  if holds and holds.month == month then return holds end
  if holds then save_holds(holds) end
  all[account] = load_holds(account, month)
  return all[account]
end

-- Raises a request's hold of credits and budget (`limit`; nil: no budget) to the totals `required` or, ahead of need,
-- `preferred`. If no other request holds anything, it may exceed a bound by `overdraft`, because a positive balance
-- always admits one request. Returns the hold.
local function raise_hold(holds, micro, tokens, limit, required, preferred, overdraft)
  -- Without the ledger balance nobody knows what is left: no reason to end what runs, nor to hold ahead of need.
  if not holds.left then preferred = required end
  local more_micro = more_of(holds.left and holds.left - holds.held or UNLIMITED, math.max(0, required.micro - micro),
    math.max(0, preferred.micro - micro), holds.held <= micro and overdraft.micro or 0)
  local left = limit and limit - holds.used_tokens - holds.held_tokens or UNLIMITED
  local more_tokens = more_of(left, math.max(0, required.tokens - tokens), math.max(0, preferred.tokens - tokens),
    holds.held_tokens <= tokens and overdraft.tokens or 0)
  if more_micro <= 0 and more_tokens <= 0 then return micro, tokens end
  holds.held, holds.held_tokens, holds.is_changed = holds.held + more_micro, holds.held_tokens + more_tokens, true
  return micro + more_micro, tokens + more_tokens
end

-- The same for a test request's allowance.
local function more_allowed(allowance, tokens, limit, required, preferred, overdraft)
  local used = number_of(allowance and redis.call('GET', allowance))
  local more = more_of((limit or UNLIMITED) - used, math.max(0, required.tokens - tokens),
    math.max(0, preferred.tokens - tokens), used <= tokens and overdraft.tokens or 0)
  if more <= 0 then return tokens end
  use_allowance(allowance, more)
  return tokens + more
end

-- Gives back all that an unfinished request holds of credits and budget, or of the test allowance.
local function free_holds(record, account)
  local values = redis.call('HMGET', record, 'hold', 'holdTokens', 'month', 'billed', 'allowance')
  local tokens = number_of(values[2])
  if values[4] == '1' then
    hold(account, values[3], -number_of(values[1]), -tokens)
  else
    use_allowance(values[5], -tokens)
  end
end

-- Compares with a record's `billed` (1 live, 0 test; '' wants either). A tombstone without it counts as live.
local function is_of_mode(billed, wanted)
  return wanted == '' or (billed or '1') == wanted
end
