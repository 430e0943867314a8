-- Hands up to so many jobs of a queue to a worker, as BullMQ's moveToActive of the pinned version hands out one, and
-- claims the request of each that starts for the first time. Fewer jobs than were asked for say that no more wait.
-- KEYS 1 list before the line, 2 line, 3 active jobs, 4 settings of the queue, 5 marker, 6 delayed jobs,
--      7 priority counter, 8 inflight
-- ARGV 1 jobs at most, 2 lock, 3 its lifetime in ms, 4 the worker's time in ms, 5 lease in ms ('' claims nothing),
--      6 name of the claims, 7 to 10 what the names of jobs, records, bodies and accounts begin with
-- Returns 'other' where the queue has what only BullMQ's own script knows: nothing is taken. Else each job: its id and
-- its fields, or, where the request was claimed, '', what claim.lua answers, the time of the job and its tenant: the rest of
-- such a job is the same for all (chat-job.ts).
local FIRST = '1'

local settings = redis.call('HMGET', KEYS[4], 'paused', 'concurrency', 'max', 'duration')
if settings[2] or settings[3] or settings[4] or redis.call('EXISTS', KEYS[6]) == 1 then return 'other' end
if settings[1] then return {} end

local wanted = tonumber(ARGV[1])
local ids = redis.call('RPOP', KEYS[1], wanted) or {}
local handed_out_before = #ids
if #ids < wanted then
  local first = redis.call('ZPOPMIN', KEYS[2], wanted - #ids)
  if #first == 0 then redis.call('DEL', KEYS[7]) end
  for index = 1, #first, 2 do ids[#ids + 1] = first[index] end
end
if #ids == 0 then return {} end
redis.call('LPUSH', KEYS[3], unpack(ids))
-- Who waits for jobs took the marker away; others may help with what is left.
if #ids == wanted and redis.call('EXISTS', KEYS[1], KEYS[2]) > 0 then redis.call('ZADD', KEYS[5], 0, '0') end

local now, taken, rows = now_ms(), {}, {}

-- Whoever hears why it is not to run asks again.
local function claim(id)
  local claimed, tenant, accepted_at = claim_request(ARGV[8] .. id, ARGV[9] .. id, KEYS[8], ARGV[10], id, FIRST, ARGV[5],
    ARGV[6] .. #taken, now, rows)
  return tenant and claimed, tenant, accepted_at
end

for index, id in ipairs(ids) do
  local job = ARGV[7] .. id
  -- In the line is what nobody has had, or what runs again: that has a fence, so it is not claimed as a first attempt.
  local may_claim = ARGV[5] ~= ''
  if may_claim and index <= handed_out_before then may_claim = number_of(redis.call('HGET', job, 'ats')) == 0 end
  local claimed, tenant, accepted_at
  if may_claim then claimed, tenant, accepted_at = claim(id) end
  if claimed then
    redis.call('HSET', job, 'processedOn', ARGV[4], 'ats', FIRST)
    taken[#taken + 1] = { id, '', claimed, accepted_at, tenant }
  else
    local attempts = int(number_of(redis.call('HGET', job, 'ats')) + 1)
    redis.call('HSET', job, 'processedOn', ARGV[4], 'ats', attempts)
    taken[#taken + 1] = { id, redis.call('HGETALL', job) }
  end
  redis.call('SET', job .. ':lock', ARGV[2], 'PX', ARGV[3])
end
for _, owed in pairs(rows) do write_owed(owed) end
return taken
