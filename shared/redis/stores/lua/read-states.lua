-- Reads the states of all providers (breakers or capacities) at one moment.
-- KEYS 1 states by name. Returns the time in ms and the hash as names and states in turn.
local time = redis.call('TIME')
return { time[1] * 1000 + math.floor(time[2] / 1000), redis.call('HGETALL', KEYS[1]) }
