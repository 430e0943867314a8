-- Hands up to so many jobs of a queue to a worker, as BullMQ's moveToActive of the pinned version hands out one, and
-- claims the request of each that starts for the first time. Fewer jobs than were asked for say that no more wait.
-- KEYS 1 list before the line, 2 line, 3 active jobs, 4 settings of the queue, 5 marker, 6 delayed jobs,
--      7 priority counter, 8 inflight
-- ARGV 1 jobs at most, 2 lock, 3 its lifetime in ms, 4 the worker's time in ms, 5 lease in ms ('' claims nothing),
--      6 name of the claims, 7 to 10 what the names of jobs, records, bodies and accounts begin with
-- Returns 'other' where the queue has what only BullMQ's own script knows: nothing is taken. Else each job: its id, its
-- fields, and what claim.lua answers where the request was claimed.
local FIRST = 1

local settings = redis.call('HMGET', KEYS[4], 'paused', 'concurrency', 'max', 'duration')
if settings[2] or settings[3] or settings[4] or redis.call('EXISTS', KEYS[6]) == 1 then return 'other' end
if settings[1] then return {} end

local wanted = tonumber(ARGV[1])
local ids = redis.call('RPOP', KEYS[1], wanted) or {}
if #ids < wanted then
  local first = redis.call('ZPOPMIN', KEYS[2], wanted - #ids)
  if #first == 0 then redis.call('DEL', KEYS[7]) end
  for index = 1, #first, 2 do ids[#ids + 1] = first[index] end
end
if #ids == 0 then return {} end
redis.call('LPUSH', KEYS[3], unpack(ids))
-- Who waits for jobs took the marker away; others may help with what is left.
if #ids == wanted and redis.call('EXISTS', KEYS[1], KEYS[2]) > 0 then redis.call('ZADD', KEYS[5], 0, '0') end

local now, taken = now_ms(), {}

local function claim(id, fields, attempt)
  local tenant = ARGV[5] ~= '' and attempt == FIRST and string.match(fields.data or '', '"tenantId":"([^"]+)"')
  if not tenant then return '' end
  local claimed = claim_request(ARGV[8] .. id, ARGV[9] .. id, KEYS[8], ARGV[10] .. tenant, id, attempt, ARGV[5],
    ARGV[6] .. #taken, now)
  -- Whoever hears why it is not to run asks again.
  return claimed[1] == 'run' and claimed or ''
end

for _, id in ipairs(ids) do
  local job = ARGV[7] .. id
  local list, fields = redis.call('HGETALL', job), {}
  for index = 1, #list, 2 do fields[list[index]] = list[index + 1] end
  local attempt = number_of(fields.ats) + 1
  redis.call('HSET', job, 'processedOn', ARGV[4], 'ats', attempt)
  redis.call('SET', job .. ':lock', ARGV[2], 'PX', ARGV[3])
  -- Of a name that comes twice the last one counts.
  for _, value in ipairs({ 'processedOn', ARGV[4], 'ats', attempt }) do list[#list + 1] = tostring(value) end
  taken[#taken + 1] = { id, list, claim(id, fields, attempt) }
end
return taken
