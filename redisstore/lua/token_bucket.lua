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

-- refund gives back what a charge of cost, spent at the instant `at`, still
-- holds of a state that was advanced to `now`: every refill since counts
-- against it. What becomes full is as a fresh bucket.
local function refund(period, refill, spent, extra, at, now, cost)
  if at > now then return spent, extra end
  local refills = ceil_div(math.max(0, extra - at), period)
  if refills >= ceil_div(cost, refill) then return spent, extra end
  local held = cost - refills * refill
  if held >= spent then return 0, spent > 0 and now or extra end
  return spent - held, extra
end

return advance, free, wait, forget, refund
