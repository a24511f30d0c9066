-- The arithmetic of a fixed window, as in internal/algorithm. Pure: no call, no clock.
--   spent    units spent in the window of the instant of writing
--   extra    nothing
-- Every number is an integer below 2^53.

-- advance brings a state written at the instant `at` to `now`; nil: damaged.
local function advance(quota, period, refill, spent, extra, at, now)
  if spent > 9007199254740991 then return nil end
  if at < now - now % period then return 0, 0 end
  return spent, 0
end

-- free is what passes now; below zero after the limit was lowered.
local function free(quota, period, spent, extra, now)
  return quota - spent
end

-- wait is the first instant at which a cost that does not pass now passes.
local function wait(quota, period, refill, spent, extra, now, cost)
  return now - now % period + period
end

-- forget is the first instant at which the state is fresh.
local function forget(period, refill, spent, extra, now)
  return now - now % period + period
end

return advance, free, wait, forget
