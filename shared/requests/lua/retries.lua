-- The tries of one call that an official client makes by itself (docs/decisions/0008-ambiguous-admissions.md). They
-- share no key, so a list has the ids of the latest equal calls' requests, the latest first, between spaces.
-- An unread answer waits this long for its caller: clients try again within some seconds.
local RETRY_WINDOW_MS = 60000
-- Characters of the list; an id that is cut has no record.
local RETRIES_LENGTH = 2048

-- The latest request in `list` that has lost its reader, while it runs or within the window after its end; nil if all
-- were read, failed, or are being cancelled. `prefix`: how names of records begin.
local function find_unread(list, prefix, now)
  for id in string.gmatch(list, '%S+') do
    local record = prefix .. id
    local state, status, finished, gone, cancel, unbilled =
      unpack(redis.call('HMGET', record, 'state', 'status', 'finishedAt', 'gone', 'cancel', 'unbilled'))
    local is_open = state == 'accepted' or state == 'running'
    local is_answered = state == 'done' and status == 'completed' and now - number_of(finished) <= RETRY_WINDOW_MS
    -- A reader at the end has got the answer.
    if (is_open or is_answered) and not (gone or cancel or unbilled)
      and not is_read(record, is_open and now or number_of(finished)) then
      return id
    end
  end
end

local function forget_retries(list, id)
  local rest = {}
  for other in string.gmatch(redis.call('GET', list) or '', '%S+') do
    if other ~= id then rest[#rest + 1] = other end
  end
  if rest[1] then
    redis.call('SET', list, table.concat(rest, ' '), 'KEEPTTL')
  else
    redis.call('DEL', list)
  end
end

-- Frees the Idempotency-Key of a request that ended without an answer, so that a retry runs, and leaves its call's
-- tries.
local function forget_idempotency(record, id)
  local key, retries = unpack(redis.call('HMGET', record, 'idempotency', 'retries'))
  if retries then forget_retries(retries, id) end
  if not key then return end
  local first = redis.call('GET', key)
  if first and string.sub(first, 1, #id) == id then redis.call('DEL', key) end
end
