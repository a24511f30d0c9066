-- The arithmetic of a token bucket, as in internal/algorithm. Pure: no call, no clock.
--   spent    the deficit: capacity minus tokens
--   extra    the instant of the last refill
-- Every number is an integer below 2^53.
local floor = math.floor

local function ceil_div(a, b)
  if a == 0 then return 0 end
  return floor((a - 1) / b) + 1
end

local function advance(quota, period, refill, spent, extra, at, now)
  if spent > 9007199254740991 or extra > at then return nil end
  if spent > quota then spent = quota end
  local periods = floor((now - extra) / period)
  if periods >= ceil_div(spent, refill) then return 0, now end
  return spent - periods * refill, extra + periods * period
end

local function free(quota, period, spent, extra, now)
  return quota - spent
end

local function wait(quota, period, refill, spent, extra, now, cost)
  return extra + ceil_div(spent - (quota - cost), refill) * period
end

local function forget(period, refill, spent, extra, now)
  return extra + ceil_div(spent, refill) * period
end

return advance, free, wait, forget
