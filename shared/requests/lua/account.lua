-- A tenant's balance in Redis is three numbers in micro-credits: `ledgerBalance` (from MongoDB, with its version),
-- `pending` (finished requests that are not settled) and `held` (admitted requests that have not finished). Spendable =
-- ledgerBalance - pending - held. The monthly token budget has the same three for each month: `ledgerTokens:`,
-- `pendingTokens:` and `heldTokens:`.
local ALLOWANCE_MS = 2 * 86400000
local HOUR_MS = 3600000

-- The number that Redis returned as text, or 0. `+ 0` reads the text once, tonumber twice.
local function number_of(value)
  return value and value ~= '' and value + 0 or 0
end

-- Changes several counters of the account in one write; takes names and differences in turn.
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

-- The micro-credits that are left after all holds and pending charges.
local function spendable(account)
  local values = redis.call('HMGET', account, 'ledgerBalance', 'pending', 'held')
  return number_of(values[1]) - number_of(values[2]) - number_of(values[3])
end

-- Takes tokens of a test request from its allowance, or gives them back if negative. The request's record names the
-- allowance, because it is that of the day of admission, even if the request ends on the next day.
local function use_allowance(allowance, tokens)
  if allowance and (tokens > 0 or redis.call('EXISTS', allowance) == 1) then
    redis.call('INCRBY', allowance, int(tokens))
    redis.call('PEXPIRE', allowance, ALLOWANCE_MS)
  end
end

-- The tokens of work that providers have done for a tenant in this hour (UTC) and nobody pays for. `noted` is an hour and
-- its tokens (finish.lua).
local function unpaid_in_hour(noted, now)
  local hour, tokens = string.match(noted or '', '^(%d+) (%d+)$')
  return hour and hour + 0 == math.floor(now / HOUR_MS) and tokens + 0 or 0
end

-- A request may hold more than it needs yet, but at most 1/16 of what is left, so that holds of running requests do not
-- refuse other requests (docs/decisions/0009-holds-and-ledger.md).
local SHARE = 16
local UNLIMITED = 1e15

-- Returns how much more a request gets within one bound: what it must have (`required`), if that is left, or what it
-- would like ahead of need (`preferred`). `overdraft` is by how much it may exceed the bound.
local function more_of(left, required, preferred, overdraft)
  if left < required then return math.max(0, math.min(required, left + overdraft)) end
  return math.max(required, math.min(preferred, math.floor(left / SHARE)))
end

-- Loads the bounds of the holds of a tenant's requests, for raise_hold. A script reads it once for all requests of the
-- tenant. `left` is false if Redis lacks the ledger balance.
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

-- The holds of an account, read on their first use. `all` has those of one month per account: those of another month
-- are written first.
local function holds_of(all, account, month)
  local holds = all[account]
  if holds and holds.month == month then return holds end
  if holds then save_holds(holds) end
  all[account] = load_holds(account, month)
  return all[account]
end

-- Raises the micro-credits and tokens that a request holds of credits and budget (`limit`; nil: no budget). `required`
-- and `preferred` are totals: what it must hold, and what it would like to hold. If no other request holds anything, it
-- may exceed a bound by `overdraft`, because a positive balance always admits one request. Returns what the request
-- holds now.
local function raise_hold(holds, micro, tokens, limit, required, preferred, overdraft)
  -- Redis came back without the ledger balance, and nobody knows what is left: no reason to end what runs, nor to hold
  -- ahead of need.
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

-- The same for a test request, whose tokens come from an allowance.
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

-- Checks a request's mode by the `billed` field of its record (1 live, 0 test; '' wants either). A tombstone without
-- the field counts as live.
local function is_of_mode(billed, wanted)
  return wanted == '' or (billed or '1') == wanted
end
