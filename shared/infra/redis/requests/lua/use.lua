-- What the requests of the last minute took, by the second: of a key and of a tenant. Three fields of one hash: `w` has an
-- entry for each second in which something was counted, oldest first, `r` and `t` have the sums. A second is dropped only
-- when all of it has left the minute, so a limit errs on the strict side by at most a second and no true minute has more.
local WINDOW_SECONDS = 60
-- Second, requests, tokens.
local ENTRY = '>I4I4I6'
local ENTRY_BYTES = 14

local function second_of(time)
  return math.floor(time / 1000)
end

-- Milliseconds until all of a second has left.
local function until_left(second, now)
  return (second + 1 + WINDOW_SECONDS) * 1000 - now
end

-- The three fields as they are read, without what has left.
local function to_use(entries, requests, tokens, now)
  local use = {
    entries = entries or '', requests = number_of(requests), tokens = number_of(tokens), second = second_of(now),
  }
  local at, keep = 1, use.second - WINDOW_SECONDS
  while at < #use.entries do
    local second, left_requests, left_tokens = struct.unpack(ENTRY, use.entries, at)
    if second >= keep then break end
    use.requests, use.tokens = use.requests - left_requests, use.tokens - left_tokens
    at = at + ENTRY_BYTES
  end
  if at > 1 then use.entries = string.sub(use.entries, at) end
  return use
end

-- Counts into the second of now, or into the newest one where the server's clock has been put back.
local function count_use(use, requests, tokens)
  local second, sum_requests, sum_tokens = use.second, requests, tokens
  local before = #use.entries - ENTRY_BYTES
  if before >= 0 then
    local newest, old_requests, old_tokens = struct.unpack(ENTRY, use.entries, before + 1)
    if newest >= second then
      second, sum_requests, sum_tokens = newest, old_requests + requests, old_tokens + tokens
      use.entries = string.sub(use.entries, 1, before)
    end
  end
  use.entries = use.entries .. struct.pack(ENTRY, second, sum_requests, sum_tokens)
  use.requests, use.tokens = use.requests + requests, use.tokens + tokens
end

-- Milliseconds until nothing is left of it.
local function reset_of_use(use, now)
  if use.entries == '' then return 0 end
  return until_left(struct.unpack('>I4', use.entries, #use.entries - ENTRY_BYTES + 1), now)
end

-- Milliseconds until no more than `most` are left of its `kind`, requests or tokens.
local function wait_for_use(use, kind, most, now)
  local left = use[kind]
  for at = 1, #use.entries, ENTRY_BYTES do
    local second, requests, tokens = struct.unpack(ENTRY, use.entries, at)
    left = left - (kind == 'requests' and requests or tokens)
    if left <= most then return until_left(second, now) end
  end
  return (WINDOW_SECONDS + 1) * 1000
end

-- The entries with more tokens and requests in the second of a time, and how many more tokens and requests these are: what
-- an earlier version has admitted is in no entry, and none has less than nothing. Nil where that second has been dropped.
local function with_more(entries, time, more_tokens, more_requests)
  local second = second_of(time)
  for at = #entries - ENTRY_BYTES + 1, 1, -ENTRY_BYTES do
    local found, requests, tokens = struct.unpack(ENTRY, entries, at)
    if found == second then
      local new_requests, new_tokens = math.max(0, requests + more_requests), math.max(0, tokens + more_tokens)
      return string.sub(entries, 1, at - 1) .. struct.pack(ENTRY, second, new_requests, new_tokens)
        .. string.sub(entries, at + ENTRY_BYTES), new_tokens - tokens, new_requests - requests
    end
    if found < second then return nil end
  end
end

-- Once more is known of a request: its second of the key's tokens has what it weighs.
local function correct_tokens(use, accepted_at, more)
  if more == 0 then return end
  local values = redis.call('HMGET', use, 'w', 't')
  local entries, added = with_more(values[1] or '', accepted_at, more, 0)
  if entries then redis.call('HSET', use, 'w', entries, 't', int(number_of(values[2]) + added)) end
end

-- Seldom: a second has left the minute whose request took more than its estimate. It counts as of now: else long answers
-- would pass by the ceiling.
local function add_late_tokens(fields, use, values, more, now)
  local row = to_use(values[1], redis.call('HGET', use, 'r'), values[2], now)
  count_use(row, 0, more)
  for _, value in ipairs({ 'w', row.entries, 't', int(row.tokens), 'r', int(row.requests) }) do
    fields[#fields + 1] = value
  end
end

-- Adds to `fields` a tenant's use with more tokens in the second of their request. `values` begins with entries and tokens.
local function add_tokens(fields, use, values, accepted_at, more, now)
  local at = #fields
  if second_of(accepted_at) >= second_of(now) - WINDOW_SECONDS then
    local entries, added = with_more(values[1] or '', accepted_at, more, 0)
    if not entries then return end
    fields[at + 1], fields[at + 2], fields[at + 3], fields[at + 4] = 'w', entries, 't', int(number_of(values[2]) + added)
  elseif more > 0 then
    add_late_tokens(fields, use, values, more, now)
  end
end

-- What a tenant's hash has of its use and its turns, for correct_row. Only a row that ends has been taken from.
local function row_names(lane)
  if lane == 'interactive' then
    return { 'w', 't', 'f:interactive', 's:interactive', 'c:interactive', 'weight', 'ends:own' }
  end
  return { 'w', 't', 'f:' .. lane, 's:' .. lane, 'c:' .. lane, 'weight', 'ends:own' }
end

-- Once it is known what a request has taken, the tenant's tokens have the true figure. Where it has ended, all that follows
-- it directly begins so much later; requests before the tenant's present row of turns have nothing to do with that. What
-- never ran, and lines of batches, are credited to or owed by the next turn. `values` are those of row_names in the hash
-- `use`; what changes is added to `fields`. Returns the row that was corrected.
local function correct_row(fields, use, values, lane, accepted_at, more, now, has_ended)
  if not values[3] then return nil end
  if more ~= 0 then add_tokens(fields, use, values, accepted_at, more, now) end
  local at = #fields
  if not has_ended or lane == 'batch' then
    fields[at + 1], fields[at + 2] = 'o:' .. lane, int(number_of(redis.call('HGET', use, 'o:' .. lane)) + more)
  elseif values[5] and accepted_at >= values[5] + 0 then
    local weight = number_of(values[6] or 1)
    local shift = number_of(values[4]) + more / weight
    if more ~= 0 then
      fields[at + 1], fields[at + 2] = 'f:' .. lane, decimal(values[3] + more / weight)
      fields[at + 3], fields[at + 4] = 's:' .. lane, decimal(shift)
    end
    return { since = values[5] + 0, shift = shift, weight = weight, ends = number_of(values[7]) }
  end
end

-- The same, of a request that never ran.
local function correct_use(use, lane, accepted_at, more, now)
  if more == 0 then return end
  local fields = {}
  correct_row(fields, use, redis.call('HMGET', use, unpack(row_names(lane))), lane, accepted_at, more, now, false)
  if #fields > 0 then redis.call('HSET', use, unpack(fields)) end
end
