-- What a charge of cost, spent at the instant `at`, still holds of a state that
-- was advanced to `now`, given back; never more than is spent. The arithmetic
-- of internal/algorithm. Pure: no call, no clock.
--   spent, extra   the state, as in each algorithm's file; returned as it is then
-- Every number is an integer below 2^53.
local floor = math.floor

-- Of a window, all of the cost until it has passed.
local function window(period, refill, spent, extra, at, now, cost)
  if at < now - now % period or at > now then return spent, extra end
  return spent - math.min(cost, spent), extra
end

-- Of a bucket, the cost less every refill since: extra is the last one, and now
-- is less than a period after it, so that there are never less than none. What
-- becomes full is as a fresh bucket.
local function bucket(period, refill, spent, extra, at, now, cost)
  if at > now then return spent, extra end
  local refills = floor((extra - at - 1) / period) + 1
  if refills >= floor((cost - 1) / refill) + 1 then return spent, extra end
  local held = cost - refills * refill
  if held >= spent then return 0, now end
  return spent - held, extra
end

return {window, window, bucket}
