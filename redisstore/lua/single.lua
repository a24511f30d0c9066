-- A batch of single charges under one policy of one limit.
--
-- KEYS: a counter each, then the session record if there is one.
-- Behind the head: quota, period, refill, regression, safety, grace; then for
-- each charge: counter, peek, now, fence, cost.
--   safety   ms that a state must outlive its usefulness; grace: and some to spare
-- State: the instant of writing, spent, extra.
-- Order: fence and clock, states, plan in order, records, states. Everything
-- is validated before the first write.
local quota, period, refill, regression, safety, grace
quota, period, refill, regression, safety, grace, pos = unpack_bytes('>I7I7I7I7I7I7', blob, pos)

local answers, n, lifetimes = {}, 0, nil
repeat
  local i, peek, now, fence, cost
  i, peek, now, fence, cost, pos = unpack_bytes('>I2BI7I7I7', blob, pos)
  if clock == 0 then now = server end
  local value, why = values[i], nil
  local written, effective, s, e = now, now, 0, 0
  if server >= fence then
    why = EXPIRED
  elseif now > server + skew or now < server - skew then
    why = CLOCK_UNSAFE
  elseif not value then
    if call('PTTL', KEYS[i]) ~= -2 then why = INCOMPATIBLE end -- of another type: MGET answers nil for it
  elseif #value ~= 21 then
    why = INCOMPATIBLE
  else
    written, s, e = unpack_bytes('>I7I7I7', value)
    if written > now then effective = written end
  end
  if not why then
    s, e = advance(quota, period, refill, s, e, written, effective)
    if not s or written > 9007199254740991 then
      why = INCOMPATIBLE
    elseif written - now > regression then
      why = CLOCK_UNSAFE
    end
  end

  n = n + 1
  if why then
    answers[n] = pack_bytes('B', why)
  else
    local room = free(quota, period, s, e, effective)
    local status, retry = UNSPENT, 0
    if cost > room and cost > 0 then
      retry = wait(quota, period, refill, s, e, effective, cost) - now
    elseif peek == 0 then
      status, room, s = SPENT, room - cost, s + cost
      values[i] = pack_bytes('>I7I7I7', effective, s, e)
      lifetimes = lifetimes or {}
      lifetimes[i] = forget(period, refill, s, e, effective) - now + safety
    end
    local more, whole = 0, 0
    if room < quota then
      if room < 0 then room = 0 end
      more = wait(quota, period, refill, s, e, effective, room + 1) - now
      whole = wait(quota, period, refill, s, e, effective, quota) - now
    end
    answers[n] = pack_bytes('>BBI7BI7I7I7I7', status, retry > 0 and 2 or 1, effective, 1, room, retry, more, whole)
  end
until pos > #blob

local reply = answer(table.concat(answers), lifetimes)
if lifetimes then
  for i, lifetime in pairs(lifetimes) do
    keep(KEYS[i], 21, values[i], lifetime, grace)
  end
end
return reply
