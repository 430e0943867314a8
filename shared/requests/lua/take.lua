-- Hands several jobs to a worker, as the pinned BullMQ's moveToActive hands out one, and claims the requests of first
-- starts. Fewer jobs than asked for mean that no more wait.
-- KEYS 1 list of jobs handed out before, 2 waiting queue, 3 active jobs, 4 settings of the queue, 5 marker, 6 delayed
-- jobs, 7 priority counter, 8 inflight
-- ARGV 1 jobs at most, 2 lock, which also names the claims, 3 its lifetime in ms, 4 the worker's time in ms, 5 lease in
-- ms ('': claims nothing), 6 to 9 how names of jobs, records, bodies and accounts begin, then tiers that are closed
-- because their providers are full
-- Returns 'other', and takes nothing, if only BullMQ's own script can hand out what the queue has. Otherwise for each
-- job: id and fields; or, for a claimed request, id, '', the reply of claim.lua, the job's time and its tenant. The
-- worker knows such a job's other fields, which never differ (bullmq-layout.ts).
local FIRST = '1'

local settings = redis.call('HMGET', KEYS[4], '@paused@', '@concurrency@', '@limiterMax@', '@limiterDuration@', 'tiers')
if settings[2] or settings[3] or settings[4] or redis.call('EXISTS', KEYS[6]) == 1 then return 'other' end
if settings[1] then return {} end

-- While tiers are closed, the waiting queue is read by tier. The index is made on need, kept by add_job
-- (fair-queue.lua), and forgotten some time after all tiers are open. A request of unknown tier may be taken at any
-- time: its worker learns why it must not run.
local function index_line(now)
  local until_ms = number_of(settings[5])
  if until_ms > now + INDEX_MS / 2 and until_ms <= now + INDEX_MS then return end
  if until_ms <= now or until_ms > now + INDEX_MS then
    for _, tier in ipairs(TIERS) do redis.call('DEL', tier_queue(KEYS[2], tier)) end
    local entries = redis.call('ZRANGE', KEYS[2], 0, -1, 'WITHSCORES')
    for index = 1, #entries, 2 do
      local tier = redis.call('HGET', ARGV[7] .. entries[index], 'tier')
      for _, each in ipairs(TIERS) do
        if not tier or tier == each then redis.call('ZADD', tier_queue(KEYS[2], each), entries[index + 1], entries[index]) end
      end
    end
  end
  redis.call('HSET', KEYS[4], 'tiers', int(now + INDEX_MS))
  for _, tier in ipairs(TIERS) do redis.call('PEXPIRE', tier_queue(KEYS[2], tier), INDEX_MS) end
end

-- In the order of the queue; entries stay in the index until they are found to have left it.
local function take_open(wanted, closed)
  local ids = {}
  while #ids < wanted do
    local next_tier, lowest
    for _, tier in ipairs(TIERS) do
      local head = not closed[tier] and redis.call('ZRANGE', tier_queue(KEYS[2], tier), 0, 0, 'WITHSCORES')[2]
      if head and (not lowest or head + 0 < lowest) then next_tier, lowest = tier, head + 0 end
    end
    if not next_tier then break end
    local id = redis.call('ZPOPMIN', tier_queue(KEYS[2], next_tier))[1]
    if redis.call('ZREM', KEYS[2], id) == 1 then ids[#ids + 1] = id end
  end
  return ids
end

local wanted = tonumber(ARGV[1])
local ids = redis.call('RPOP', KEYS[1], wanted) or {}
local handed_out_before = #ids
if ARGV[10] then
  local closed = {}
  for index = 10, #ARGV do closed[ARGV[index]] = true end
  index_line(now_ms())
  if #ids < wanted then
    for _, id in ipairs(take_open(wanted - #ids, closed)) do ids[#ids + 1] = id end
  end
  -- Other workers may have places for what is left.
  if redis.call('EXISTS', KEYS[1], KEYS[2]) > 0 then redis.call('ZADD', KEYS[5], 0, '@jobWaits@') end
elseif #ids < wanted then
  local first = redis.call('ZPOPMIN', KEYS[2], wanted - #ids)
  if #first == 0 then redis.call('DEL', KEYS[7]) end
  for index = 1, #first, 2 do ids[#ids + 1] = first[index] end
end
if #ids == 0 then return {} end
redis.call('LPUSH', KEYS[3], unpack(ids))
-- The worker that waited has removed the marker; others may take what is left.
if #ids == wanted and redis.call('EXISTS', KEYS[1], KEYS[2]) > 0 then redis.call('ZADD', KEYS[5], 0, '@jobWaits@') end

local taken = {}
local call = { inflight = KEYS[8], accounts = ARGV[9], lease_ms = ARGV[5], now = now_ms(), holds = {} }
for index, id in ipairs(ids) do
  local job = ARGV[6] .. id
  -- Waiting jobs start for the first time, or run again with a fence, which refuses the claim of a first delivery.
  local may_claim = ARGV[5] ~= ''
  if may_claim and index <= handed_out_before then may_claim = number_of(redis.call('HGET', job, '@attemptsStarted@')) == 0 end
  local claimed, tenant, accepted_at
  if may_claim then
    -- A failed claim does not stop the others: the worker of the unclaimed job meets the fault by itself.
    local _
    _, claimed, tenant, accepted_at =
      pcall(claim_request, call, id, ARGV[7] .. id, ARGV[8] .. id, FIRST, ARGV[2])
  end
  -- An unclaimed request's worker claims it and learns why it must not run.
  if tenant then
    redis.call('HSET', job, '@processedOn@', ARGV[4], '@attemptsStarted@', FIRST)
    taken[#taken + 1] = { id, '', claimed, accepted_at, tenant }
  else
    local deliveries = int(number_of(redis.call('HGET', job, '@attemptsStarted@')) + 1)
    redis.call('HSET', job, '@processedOn@', ARGV[4], '@attemptsStarted@', deliveries)
    taken[#taken + 1] = { id, redis.call('HGETALL', job) }
  end
  redis.call('SET', job .. ':@lock@', ARGV[2], 'PX', ARGV[3])
end
for _, holds in pairs(call.holds) do save_holds(holds) end
return taken
