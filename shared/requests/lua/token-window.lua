-- The requests and tokens of a key or a tenant in the last minute, by the second. Field `window` of its hash has an ENTRY for
-- each second that has any, the oldest first. A second is dropped only when all of it has left the minute, so a limit
-- errs on the strict side by at most a second, and no true minute has more.
local WINDOW_SECONDS = 60
-- Second, requests, tokens.
local ENTRY = '>I4I4I6'
local ENTRY_BYTES = 14
-- A second may begin between two readings of clocks that agree.
local APART_SECONDS = 1

local function second_of(time)
  return math.floor(time / 1000)
end

-- Milliseconds until all of a second has left.
local function expires_in_ms(second, now)
  return (second + 1 + WINDOW_SECONDS) * 1000 - now
end

-- The server's clock was set back by so many seconds: moves all entries by as much. Written at once, or each look would
-- have to do it again.
local function shift_to_now(hash, entries, by)
  local moved = {}
  for at = 1, #entries, ENTRY_BYTES do
    local second, requests, tokens = struct.unpack(ENTRY, entries, at)
    moved[#moved + 1] = struct.pack(ENTRY, second - by, requests, tokens)
  end
  entries = table.concat(moved)
  redis.call('HSET', hash, 'window', entries)
  return entries
end

-- The window that the field `window` of a hash has (false: none), without the seconds that have left.
local function read_window(hash, entries, now)
  local present, newest = second_of(now), 0
  entries = entries or ''
  if entries ~= '' then newest = struct.unpack('>I4', entries, #entries - ENTRY_BYTES + 1) end
  if newest > present + APART_SECONDS then
    entries, newest = shift_to_now(hash, entries, newest - present), present
  end
  local window, from = { second = math.max(present, newest), requests = 0, tokens = 0 }, 1
  for at = 1, #entries, ENTRY_BYTES do
    local second, requests, tokens = struct.unpack(ENTRY, entries, at)
    if second < present - WINDOW_SECONDS then
      from = at + ENTRY_BYTES
    else
      window.requests, window.tokens = window.requests + requests, window.tokens + tokens
    end
  end
  window.entries = from > 1 and string.sub(entries, from) or entries
  return window
end

-- Adds requests and tokens, which may be negative, to a second. Returns false if the window does not have that second.
local function change_second(window, second, more_requests, more_tokens)
  local entries = window.entries
  for at = #entries - ENTRY_BYTES + 1, 1, -ENTRY_BYTES do
    local found, requests, tokens = struct.unpack(ENTRY, entries, at)
    if found < second then return false end
    if found == second then
      local new_requests, new_tokens = math.max(0, requests + more_requests), math.max(0, tokens + more_tokens)
      window.entries = string.sub(entries, 1, at - 1) .. struct.pack(ENTRY, second, new_requests, new_tokens)
        .. string.sub(entries, at + ENTRY_BYTES)
      window.requests, window.tokens = window.requests + new_requests - requests, window.tokens + new_tokens - tokens
      return true
    end
  end
  return false
end

-- Counts requests and tokens in the present second.
local function count_now(window, requests, tokens)
  if change_second(window, window.second, requests, tokens) then return end
  window.entries = window.entries .. struct.pack(ENTRY, window.second, requests, tokens)
  window.requests, window.tokens = window.requests + requests, window.tokens + tokens
end

-- Milliseconds until the window has no tokens left. Seconds whose tokens were all given back do not count.
local function reset_of_window(window, now)
  for at = #window.entries - ENTRY_BYTES + 1, 1, -ENTRY_BYTES do
    local second, _, tokens = struct.unpack(ENTRY, window.entries, at)
    if tokens > 0 then return expires_in_ms(second, now) end
  end
  return 0
end

-- Milliseconds until at most `most` are left of a `kind`: requests or tokens.
local function wait_for_window(window, kind, most, now)
  local left = window[kind]
  for at = 1, #window.entries, ENTRY_BYTES do
    local second, requests, tokens = struct.unpack(ENTRY, window.entries, at)
    left = left - (kind == 'requests' and requests or tokens)
    if left <= most then return expires_in_ms(second, now) end
  end
  return (WINDOW_SECONDS + 1) * 1000
end

-- Adds tokens in the second of their request's acceptance. If the window does not have that second, tokens beyond the
-- estimate count now, or long answers would escape limit and ceiling. Returns whether the window has changed, and
-- whether they count now.
local function correct_second(window, accepted_at, more)
  if change_second(window, second_of(accepted_at), 0, more) then return true, false end
  if more <= 0 then return false, false end
  count_now(window, 0, more)
  return true, true
end

-- Called once more is known about a request: corrects the key's tokens in the second of its acceptance.
local function correct_tokens(hash, accepted_at, more, now)
  if more == 0 then return end
  local window = read_window(hash, redis.call('HGET', hash, 'window'), now)
  local is_changed, is_late = correct_second(window, accepted_at, more)
  if is_changed then redis.call('HSET', hash, 'window', window.entries) end
  -- The window may have been empty for so long that it had expired.
  if is_late then redis.call('PEXPIRE', hash, 3 * MINUTE_MS) end
end

-- The fields of a tenant's hash about its window and its tags, for correct_finish_tag.
local function queue_fields(queue)
  if queue == 'interactive' then
    return { 'window', 'finishTag:interactive', 'shift:interactive', 'busySince:interactive', 'weight', 'ends:own' }
  end
  return { 'window', 'finishTag:' .. queue, 'shift:' .. queue, 'busySince:' .. queue, 'weight', 'ends:own' }
end

-- Called once it is known what a request has taken: gives the tenant's tokens the true figure. If the request has
-- ended, all requests that follow it directly start later by the difference; requests before the tenant's present busy
-- period change nothing. For a request that never ran, or a line of a batch, the next request is credited or charged
-- instead. `values` are those of queue_fields in the hash `use`; changes are added to `fields`. Returns the busy period that
-- was corrected.
local function correct_finish_tag(fields, use, values, queue, accepted_at, more, now, has_ended)
  if not values[2] then return nil end
  if more ~= 0 then
    local window = read_window(use, values[1], now)
    if correct_second(window, accepted_at, more) then put(fields, 'window', window.entries) end
  end
  local at = #fields
  if not has_ended or queue == 'batch' then
    fields[at + 1], fields[at + 2] = 'debt:' .. queue, int(number_of(redis.call('HGET', use, 'debt:' .. queue)) + more)
  elseif values[4] and accepted_at >= values[4] + 0 then
    local weight = number_of(values[5] or 1)
    local shift = number_of(values[3]) + more / weight
    if more ~= 0 then
      fields[at + 1], fields[at + 2] = 'finishTag:' .. queue, decimal(values[2] + more / weight)
      fields[at + 3], fields[at + 4] = 'shift:' .. queue, decimal(shift)
    end
    return { since = values[4] + 0, shift = shift, weight = weight, ends = number_of(values[6]) }
  end
end

-- The same for a request that never ran.
local function correct_use(use, queue, accepted_at, more, now)
  if more == 0 then return end
  local fields = {}
  correct_finish_tag(fields, use, redis.call('HMGET', use, unpack(queue_fields(queue))), queue, accepted_at, more, now, false)
  if #fields > 0 then redis.call('HSET', use, unpack(fields)) end
end
