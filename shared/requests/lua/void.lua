-- Voids an admission whose job never started: frees its holds; a tombstone keeps late admissions and jobs of its id
-- from running. Safe to repeat.
-- KEYS those of drop.lua, 10 channel of cancelled requests
-- ARGV 1 request id, 2 lifetime of the tombstone in ms, 3 last entry for readers ('': there are none), 4 1 if the
-- caller got 503: a worker that has the request stops, and nobody pays, 5 1 if no admission can still be under way: a
-- missing record then needs no tombstone, 6 1 if the caller gets an error unless a worker has the request, 7 tenant id
-- ('': unknown)
-- Returns the found state, of an accepted one with drop_accepted's values: 'accepted' and 'missing' are void now, any
-- other is unchanged. 'joined': stays accepted, as another call reads it, or was promised its end. 'stopped': its
-- worker gets a signal to stop. 'gone': the request has ended and was charged, but its caller got 503, and nobody can
-- read the answer, or knows of it; its Idempotency-Key is free.
local state, idempotency, is_gone, first_token_at, is_unbilled, is_joined, retention, was_restored =
  unpack(redis.call('HMGET', KEYS[1], 'state', 'idempotency', 'gone', 'firstTokenAt', 'unbilled', 'joined', 'retentionMs',
    'reader:' .. unknown_reader(KEYS[1])))
if not state and ARGV[5] == '1' then return 'missing' end
local got_503 = ARGV[4] == '1'
-- An error for one call takes nothing from another that has joined. With an Idempotency-Key, the caller's retry may
-- still join; if nothing is kept, it may come too late to read and runs as a new one.
local is_found = is_joined or idempotency and retention ~= '0'
if state == 'running' and got_503 and not is_found then
  forget_idempotency(KEYS[1], ARGV[1])
  redis.call('HSET', KEYS[1], 'cancel', '1', 'unbilled', '1')
  redis.call('@PUBLISH@', KEYS[10], ARGV[1])
  return 'stopped'
end
local has_text = (first_token_at or '') ~= ''
-- Redis had lost the request when its caller got the error, and its worker has put it back since.
local is_unreadable = is_gone or was_restored and not idempotency
if state == 'done' and got_503 and is_unreadable and has_text and not is_unbilled and not is_joined then
  forget_idempotency(KEYS[1], ARGV[1])
  return 'gone'
end
local is_told = got_503 or ARGV[6] == '1'
if state == 'accepted' and is_told and is_joined then return 'joined' end
-- The tombstone is the sweep's, which tells nobody, or of a try to take the request back.
if state == 'void' and is_told then redis.call('HDEL', KEYS[1], 'voidUnconfirmed') end
if state and state ~= 'accepted' then return state end
local dropped
if state then
  dropped = drop_accepted(ARGV[1])
  redis.call('HSET', KEYS[1], 'hold', 0, 'holdTokens', 0)
  if ARGV[3] ~= '' then
    redis.call('HSET', KEYS[1], 'lastSeq', 1)
    emit(KEYS[6], redis.call('HGET', KEYS[1], 'channels'), ARGV[1], 1, ARGV[3], ARGV[2], '')
  end
end
redis.call('HDEL', KEYS[1], 'metadata')
redis.call('HSET', KEYS[1], 'state', 'void')
-- Scans of one tenant's records leave others' tombstones alone.
if not state and ARGV[7] ~= '' then redis.call('HSET', KEYS[1], 'tenant', ARGV[7]) end
-- Redis may have lost the request's end. Its holder may restore it as long as no caller got an error
-- (restore-answer.lua).
if not is_told then redis.call('HSET', KEYS[1], 'voidUnconfirmed', '1') end
redis.call('PEXPIRE', KEYS[1], ARGV[2])
-- MongoDB may have the body for longer than the tombstone stays.
record_end(tag_of(KEYS[3]), ARGV[1], INTENT_MS)
return dropped or 'missing'
