-- Gives back whatever an accepted request has taken, for the scripts that end it before a worker has it. Their first
-- six keys are these, see accepted-keys.ts.
local function drop_accepted(id)
  free_holds(KEYS[1], KEYS[4])
  correct_tokens(KEYS[5], KEYS[6], id, 0)
  redis.call('ZREM', KEYS[3], id)
  redis.call('UNLINK', KEYS[2])
  forget_idempotency(KEYS[1], id)
end
