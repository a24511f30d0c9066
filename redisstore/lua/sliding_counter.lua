-- The arithmetic of a sliding counter, as in internal/algorithm. Pure: no call, no clock.
--   spent    units spent in the window of the instant of writing
--   extra    units spent in the window before it
-- Every number is an integer below 2^53.
local floor = math.floor

local function advance(quota, period, refill, spent, extra, at, now)
  local most = floor(9007199254740991 / period) - 1
  if spent > most or extra > most then return nil end
  local passed = (now - now % period) - (at - at % period)
  if passed == 0 then return spent, extra end
  if passed == period then return 0, spent end
  return 0, 0
end

local function free(quota, period, spent, extra, now)
  return quota - floor(extra * (period - now % period) / period) - spent
end

-- The weight of a count falls as its window leaves: solve
-- floor(count * left / period) <= room for left, the part that still weighs,
-- first in this window for the previous count, then in the next for this one.
local function wait(quota, period, refill, spent, extra, now, cost)
  local begin = now - now % period
  local room = quota - spent - cost
  if room >= 0 then
    local left = floor(((room + 1) * period - 1) / extra)
    if left >= 1 then return begin + period - left end
  end
  local left = period
  if spent > 0 then
    left = math.min(left, floor(((quota - cost + 1) * period - 1) / spent))
  end
  return begin + 2 * period - left
end

local function forget(period, refill, spent, extra, now)
  return now - now % period + 2 * period
end

return advance, free, wait, forget
