-- A batch of single charges under one policy of one limit.
--
-- KEYS: a counter each, then the session record if there is one.
-- Behind the head: quota, period, refill, regression, safety, grace; then for
-- each charge: counter, peek, now, fence, cost.
--   safety   ms that a state must outlive its usefulness; grace: and some to spare
-- Order: fence and clock, states, plan in order, records, states. Everything
-- is validated before the first write.
local past = earlier()
if past then return past end

local quota, period, refill, regression, safety, grace
quota, period, refill, regression, safety, grace, pos = unpack_bytes('>I7I7I7I7I7I7', blob, pos)

local at, spent, extra, damaged, last = {}, {}, {}, {}, {}
local counters = session == 0 and #KEYS or #KEYS - 1
for i = 1, counters do
  local value = values[i]
  if not value then
    damaged[i] = foreign(KEYS[i])
  elseif #value == 21 then
    at[i], spent[i], extra[i] = unpack_bytes('>I7I7I7', value)
    damaged[i] = at[i] > 9007199254740991
  else
    damaged[i] = true
  end
end

-- plan decides one charge on counter i and returns its answer.
local function plan(i, peek, now, cost)
  if damaged[i] then return pack_bytes('B', INCOMPATIBLE) end
  local written = at[i] or now
  local effective = written > now and written or now
  local s, e = advance(quota, period, refill, spent[i] or 0, extra[i] or 0, written, effective)
  if not s then return pack_bytes('B', INCOMPATIBLE) end
  if written - now > regression then return pack_bytes('B', CLOCK_UNSAFE) end
  local room = free(quota, period, s, e, effective)
  local status, retry = UNSPENT, 0
  if cost > room and cost > 0 then
    retry = wait(quota, period, refill, s, e, effective, cost) - now
  elseif peek == 0 then
    status, room, s = SPENT, room - cost, s + cost
    at[i], spent[i], extra[i], last[i] = effective, s, e, now
  end
  local more, whole = 0, 0
  if room < quota then
    if room < 0 then room = 0 end
    more = wait(quota, period, refill, s, e, effective, room + 1) - now
    whole = wait(quota, period, refill, s, e, effective, quota) - now
  end
  return pack_bytes('>BBI7BI7I7I7I7', status, retry > 0 and 2 or 1, effective, 1, room, retry, more, whole)
end

local answers, n = {}, 0
repeat
  local i, peek, now, fence, cost
  i, peek, now, fence, cost, pos = unpack_bytes('>I2BI7I7I7', blob, pos)
  n = n + 1
  if clock == 0 then now = server end
  if server >= fence then
    answers[n] = pack_bytes('B', EXPIRED)
  elseif unsafe(now) then
    answers[n] = pack_bytes('B', CLOCK_UNSAFE)
  else
    answers[n] = plan(i, peek, now, cost)
  end
until pos > #blob

local reply = answer(table.concat(answers), next(last) ~= nil)
for i, now in pairs(last) do
  local lifetime = forget(period, refill, spent[i], extra[i], at[i]) - now + safety
  keep(KEYS[i], values[i], pack_bytes('>I7I7I7', at[i], spent[i], extra[i]), lifetime, grace)
end
return reply
