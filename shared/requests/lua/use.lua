-- What the requests of a key or a tenant took in the last minute, by the second, in two fields of one hash: `u` has
-- what changes with each request; `w` has an entry for each earlier second, oldest first, so its hundreds of bytes are
-- read and written only about once per second. A second is dropped only when all of it has left the minute, so a limit
-- errs on the strict side by at most a second, and no true minute has more.
-- `u` is the newest second, the requests and tokens counted in it, those of the minute before it, and the corrections
-- of earlier seconds since. When the next second begins, all that moves to `w`, with sums in `r` and `t`: versions that
-- do not know `u` read and write these three, and each version sees the other's seconds.
local WINDOW_SECONDS = 60
-- Second, requests, tokens.
local ENTRY = '>I4I4I6'
local ENTRY_BYTES = 14
-- The same for the newest second, then the sums of requests and tokens before it.
local NEWEST = '>I4I4I6I4I6'
local NEWEST_BYTES = 24
-- A second, and by how much its tokens are off.
local CORRECTION = '>I4i6'
local CORRECTION_BYTES = 10

local function second_of(time)
  return math.floor(time / 1000)
end

-- Milliseconds until all of a second has left.
local function until_left(second, now)
  return (second + 1 + WINDOW_SECONDS) * 1000 - now
end

-- The entries with more tokens and requests in a second, and by how many tokens and requests they have changed: no
-- count goes below 0, because requests that an earlier version admitted may be in no entry. Nil if the second has no
-- entry.
local function with_more(entries, second, more_tokens, more_requests)
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

-- The entries with a new one for a second that has none yet. An earlier version may have written later seconds.
local function with_second(entries, second, requests, tokens)
  local behind = #entries
  while behind > 0 and struct.unpack('>I4', entries, behind - ENTRY_BYTES + 1) > second do behind = behind - ENTRY_BYTES end
  return string.sub(entries, 1, behind) .. struct.pack(ENTRY, second, requests, tokens) .. string.sub(entries, behind + 1)
end

-- A second begins: all that was counted before it becomes entries, without those that have left.
local function turn_use(hash, newest, now)
  local values = redis.call('HMGET', hash, 'w', 'r', 't', 'kept')
  local use = {
    hash = hash, entries = values[1] or '', requests = number_of(values[2]), tokens = number_of(values[3]),
    second = second_of(now), now_requests = 0, now_tokens = 0, corrections = '',
    -- When a key's windows and logs were last given longer to live.
    kept_at = number_of(values[4]),
  }
  local function add(entries, more_tokens, more_requests)
    use.entries, use.tokens, use.requests = entries, use.tokens + more_tokens, use.requests + more_requests
  end
  if newest then
    local second, requests, tokens = struct.unpack(NEWEST, newest)
    local entries, more_tokens, more_requests = with_more(use.entries, second, tokens, requests)
    if entries then
      add(entries, more_tokens, more_requests)
    elseif requests > 0 or tokens > 0 then
      add(with_second(use.entries, second, requests, tokens), tokens, requests)
    end
    for at = NEWEST_BYTES + 1, #newest, CORRECTION_BYTES do
      local corrected, more = struct.unpack(CORRECTION, newest, at)
      entries, more_tokens = with_more(use.entries, corrected, more, 0)
      if entries then add(entries, more_tokens, 0) end
    end
  end
  local at, keep = 1, use.second - WINDOW_SECONDS
  while at < #use.entries do
    local second, requests, tokens = struct.unpack(ENTRY, use.entries, at)
    if second >= keep then break end
    use.requests, use.tokens = use.requests - requests, use.tokens - tokens
    at = at + ENTRY_BYTES
  end
  if at > 1 then use.entries = string.sub(use.entries, at) end
  use.requests, use.tokens = math.max(0, use.requests), math.max(0, use.tokens)
  return use
end

local function newest_of(use)
  return struct.pack(NEWEST, use.second, use.now_requests, use.now_tokens, use.requests - use.now_requests,
    use.tokens - use.now_tokens) .. use.corrections
end

-- Adds the changed fields to `fields`, which has `at` elements so far. Returns its new length.
local function add_use(fields, at, use)
  fields[at + 1], fields[at + 2] = 'u', newest_of(use)
  if not use.entries then return at + 2 end
  fields[at + 3], fields[at + 4] = 'w', use.entries
  fields[at + 5], fields[at + 6] = 'r', int(use.requests - use.now_requests)
  fields[at + 7], fields[at + 8] = 't', int(use.tokens - use.now_tokens)
  return at + 8
end

-- A second may begin between two readings of clocks that agree.
local APART_SECONDS = 1

-- The server's clock was set back: all seconds move by as much, so that the newest one is the present one. Written at
-- once, or each look would have to do it again.
local function bring_use_back(hash, newest, now)
  local second = struct.unpack(NEWEST, newest)
  local use, by, moved = turn_use(hash, newest, (second + 1) * 1000), second - second_of(now), {}
  for at = 1, #use.entries, ENTRY_BYTES do
    local found, requests, tokens = struct.unpack(ENTRY, use.entries, at)
    moved[#moved + 1] = struct.pack(ENTRY, found - by, requests, tokens)
  end
  use.second, use.entries = second_of(now), table.concat(moved)
  local fields = {}
  add_use(fields, 0, use)
  redis.call('HSET', hash, unpack(fields))
  return use
end

-- What `u` of a hash says, as of now.
local function to_use(hash, newest, now)
  local second, now_requests, now_tokens, requests, tokens = 0, 0, 0, 0, 0
  if newest then second, now_requests, now_tokens, requests, tokens = struct.unpack(NEWEST, newest) end
  if second < second_of(now) then return turn_use(hash, newest, now) end
  if second > second_of(now) + APART_SECONDS then return bring_use_back(hash, newest, now) end
  return {
    hash = hash, second = second, now_requests = now_requests, now_tokens = now_tokens,
    requests = requests + now_requests, tokens = tokens + now_tokens, corrections = string.sub(newest, NEWEST_BYTES + 1),
  }
end

local function count_use(use, requests, tokens)
  use.requests, use.now_requests = use.requests + requests, use.now_requests + requests
  use.tokens, use.now_tokens = use.tokens + tokens, use.now_tokens + tokens
end

-- Milliseconds until the window has no tokens left. Seconds whose tokens were all given back do not count.
local function reset_of_use(use, now)
  if use.tokens <= 0 then return 0 end
  if use.now_tokens > 0 then return until_left(use.second, now) end
  local entries = use.entries or turn_use(use.hash, newest_of(use), now).entries
  for at = #entries - ENTRY_BYTES + 1, 1, -ENTRY_BYTES do
    local second, _, tokens = struct.unpack(ENTRY, entries, at)
    if tokens > 0 then return until_left(second, now) end
  end
  return 0
end

-- Milliseconds until at most `most` are left of a `kind`: requests or tokens.
local function wait_for_use(use, kind, most, now)
  local left = use[kind]
  -- A second that has just begun has no entry yet, and its `turn_use` here is not written.
  local entries = use.entries or turn_use(use.hash, newest_of(use), now).entries
  for at = 1, #entries, ENTRY_BYTES do
    local second, requests, tokens = struct.unpack(ENTRY, entries, at)
    left = left - (kind == 'requests' and requests or tokens)
    if left <= most then return until_left(second, now) end
  end
  return (WINDOW_SECONDS + 1) * 1000
end

local function with_correction(corrections, second, more)
  for at = 1, #corrections, CORRECTION_BYTES do
    local found, before = struct.unpack(CORRECTION, corrections, at)
    if found == second then
      return string.sub(corrections, 1, at - 1) .. struct.pack(CORRECTION, second, before + more)
        .. string.sub(corrections, at + CORRECTION_BYTES)
    end
  end
  return corrections .. struct.pack(CORRECTION, second, more)
end

-- Corrects a request that an earlier version admitted, in a second in which later versions counted nothing.
local function correct_entries(hash, second, more)
  local values = redis.call('HMGET', hash, 'w', 't')
  local entries, added = with_more(values[1] or '', second, more, 0)
  if entries then redis.call('HSET', hash, 'w', entries, 't', int(number_of(values[2]) + added)) end
end

-- `u` with more tokens in the second of their request; nil if that second has left or only an earlier version counted
-- in it.
local function corrected(hash, newest, accepted_at, more)
  local at = second_of(accepted_at)
  if not newest then return correct_entries(hash, at, more) end
  local second, requests, tokens, before_requests, before_tokens = struct.unpack(NEWEST, newest)
  if at > second then return correct_entries(hash, at, more) end
  if at < second - WINDOW_SECONDS then return nil end
  local corrections = string.sub(newest, NEWEST_BYTES + 1)
  if at == second then
    tokens = math.max(0, tokens + more)
  else
    before_tokens = math.max(0, before_tokens + more)
    corrections = with_correction(corrections, at, more)
  end
  return struct.pack(NEWEST, second, requests, tokens, before_requests, before_tokens) .. corrections
end

-- Adds to `fields` a use with more requests and tokens in the present second.
local function add_as_of_now(fields, hash, newest, requests, tokens, now)
  local use, at = to_use(hash, newest, now), #fields
  if newest then
    count_use(use, requests, tokens)
    add_use(fields, at, use)
    return
  end
  -- Only an earlier version has admitted requests, and it knows only these fields.
  local entries = with_more(use.entries, use.second, tokens, requests)
    or with_second(use.entries, use.second, requests, tokens)
  fields[at + 1], fields[at + 2] = 'w', entries
  fields[at + 3], fields[at + 4] = 'r', int(use.requests + requests)
  fields[at + 5], fields[at + 6] = 't', int(use.tokens + tokens)
end

-- Adds to `fields` a use with more tokens in the second of their request. Returns whether they came too late for it.
local function add_tokens(fields, hash, newest, accepted_at, more, now)
  local age = second_of(now) - second_of(accepted_at)
  if age > WINDOW_SECONDS or age < -APART_SECONDS then
    -- The second has left the minute, or lies ahead: tokens beyond the estimate count now, or long answers would escape
    -- limit and ceiling.
    if more > 0 then add_as_of_now(fields, hash, newest, 0, more, now) end
    return more > 0
  end
  local text = corrected(hash, newest, accepted_at, more)
  if not text then return false end
  local at = #fields
  fields[at + 1], fields[at + 2] = 'u', text
  return false
end

-- Called once more is known about a request: corrects the key's tokens in the second of its acceptance.
local function correct_tokens(hash, accepted_at, more, now)
  if more == 0 then return end
  local fields = {}
  local is_late = add_tokens(fields, hash, redis.call('HGET', hash, 'u'), accepted_at, more, now)
  if #fields == 0 then return end
  redis.call('HSET', hash, unpack(fields))
  -- The window may have been empty for so long that it had expired.
  if is_late then redis.call('PEXPIRE', hash, 3 * MINUTE_MS) end
end

-- The fields of a tenant's hash about its use and its turns, for correct_row.
local function row_names(lane)
  if lane == 'interactive' then
    return { 'u', 'f:interactive', 's:interactive', 'c:interactive', 'weight', 'ends:own' }
  end
  return { 'u', 'f:' .. lane, 's:' .. lane, 'c:' .. lane, 'weight', 'ends:own' }
end

-- Called once it is known what a request has taken: gives the tenant's tokens the true figure. If the request has
-- ended, all turns that follow it directly begin later by the difference; requests before the tenant's present row of
-- turns change nothing. For a request that never ran, or a line of a batch, the next turn is credited or charged
-- instead. `values` are those of row_names in the hash `use`; changes are added to `fields`. Returns the row that was
-- corrected.
local function correct_row(fields, use, values, lane, accepted_at, more, now, has_ended)
  if not values[2] then return nil end
  if more ~= 0 then add_tokens(fields, use, values[1], accepted_at, more, now) end
  local at = #fields
  if not has_ended or lane == 'batch' then
    fields[at + 1], fields[at + 2] = 'o:' .. lane, int(number_of(redis.call('HGET', use, 'o:' .. lane)) + more)
  elseif values[4] and accepted_at >= values[4] + 0 then
    local weight = number_of(values[5] or 1)
    local shift = number_of(values[3]) + more / weight
    if more ~= 0 then
      fields[at + 1], fields[at + 2] = 'f:' .. lane, decimal(values[2] + more / weight)
      fields[at + 3], fields[at + 4] = 's:' .. lane, decimal(shift)
    end
    return { since = values[4] + 0, shift = shift, weight = weight, ends = number_of(values[6]) }
  end
end

-- The same for a request that never ran.
local function correct_use(use, lane, accepted_at, more, now)
  if more == 0 then return end
  local fields = {}
  correct_row(fields, use, redis.call('HMGET', use, unpack(row_names(lane))), lane, accepted_at, more, now, false)
  if #fields > 0 then redis.call('HSET', use, unpack(fields)) end
end
