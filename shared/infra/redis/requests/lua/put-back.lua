-- @seldom
-- Writes the record anew of a request of which Redis has lost everything, as it was when its worker ended it: so what follows,
-- in the same script, is its end. Leaves every other record alone, but for a tombstone of which nobody was told (void.lua), and
-- for an answer that was put back from MongoDB (restore-answer.lua): that one has no fence, and says nothing of its charge.
-- `stream` is the key of its text. KEYS and ARGV: see finish.lua.
local function put_back(id, stream, fence, owner, retention)
  local record, named, entity, value, life_ms = KEYS[1], KEYS[14], KEYS[15], ARGV[6], ARGV[7]
  local state, untold, known_fence = unpack(redis.call('HMGET', record, 'state', 'untold', 'fence'))
  if state and not (state == 'void' and untold) and (state ~= 'done' or known_fence) then return end
  redis.call('DEL', record, stream, KEYS[10])
  redis.call('HSET', record, 'state', 'running', 'fence', fence, 'owner', owner, 'sent', '0', 'hold', '0', 'holdTokens', '0',
    unpack(ARGV, 8))
  -- Another request may have the Idempotency-Key by now.
  if value ~= '' then
    redis.call('SET', named, value, 'PX', life_ms, 'NX')
    if string.sub(redis.call('GET', named), 1, #id) == id then redis.call('HSET', record, 'idempotency', named) end
  end
  -- Longer than admission keeps what it lists: nothing in the list may go sooner for this.
  local listed_ms = 2 * life_ms + retention
  if entity ~= record then
    redis.call('ZADD', entity, int(now_ms() + listed_ms), id)
    redis.call('PEXPIRE', entity, int(listed_ms))
  end
end
