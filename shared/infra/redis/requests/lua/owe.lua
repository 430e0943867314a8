-- Writes the charge of a finished request once more of which Redis has lost everything: as pending until it is booked, so that
-- its credits and tokens are not free meanwhile, and into the outbox. Tokens of a test key go into the allowance. What is
-- pending is in the outbox already. What was booked meanwhile is pending until the book has refused to take it twice.
-- KEYS 1 record, 2 account, 3 pending charges, 4 outbox, 5 test allowance
-- ARGV 1 request id, 2 micro-credits, 3 tokens, 4 month, 5 1 if it is billed, 6 settlement record,
--      7 1 if a request without a record may be run again: its own end is then what is pending, 8 1 for the first time: a
--      repeated one counts no tokens in the allowance
if redis.call('HEXISTS', KEYS[3], ARGV[1]) == 1 then return 0 end
local state = redis.call('HGET', KEYS[1], 'state')
local runs_again = state == 'accepted' or state == 'running' or not state and ARGV[7] == '1'
if not runs_again then
  local is_billed = ARGV[5] == '1'
  local micro, tokens = is_billed and ARGV[2] or '0', is_billed and ARGV[3] or '0'
  redis.call('HSET', KEYS[3], ARGV[1], micro .. ':' .. tokens .. ':' .. ARGV[4])
  if is_billed then
    move(KEYS[2], 'pend', micro, 'pt:' .. ARGV[4], tokens)
  elseif ARGV[8] == '1' then
    use_allowance(KEYS[5], tonumber(ARGV[3]))
  end
end
redis.call('XADD', KEYS[4], '*', 's', ARGV[6])
return 1
