-- A batch of groups of charges, under policies of any limits, with callers' ids.
--
-- KEYS: the counters, then the callers' records, then the session record.
-- Behind the head, each list led by its length:
--   policies   regression, safety, grace; its limits: algorithm, quota, period, refill
--   counters   the policy of each
--   groups     what to do, now, fence; place of the record's key among KEYS,
--              or 0, and then id, payload, TTL, entries, bytes, TTL of the key;
--              charges: counter, shadow, cost, receipt
--   receipt    the instant of the charge that a refund gives back, or 0;
--              of anything else it means nothing
-- A counter's state: the instant of writing, then spent and extra of each limit.
-- Callers' records of a counter: their number; then for each id, payload, what
-- was done, expiry, length of the answer, answer. That of a refund takes the
-- place of what it undid.
-- Order: fence, callers' ids, clock, states, plan in order, records, states.
-- Everything is validated before the first write.

local TAKE, REFUND = 0, 2 -- and 1: peek

-- foreign tells a key of another type from a missing one: MGET answers nil for both.
local function foreign(key)
  return call('PTTL', key) ~= -2
end

local function count()
  local n
  n, pos = unpack_bytes('>I2', blob, pos)
  return n
end

local policies = {}
for p = 1, count() do
  local policy = {}
  policy.regression, policy.safety, policy.grace, pos = unpack_bytes('>I7I7I7', blob, pos)
  for l = 1, count() do
    local limit, kind = {}, nil
    kind, limit.quota, limit.period, limit.refill, pos = unpack_bytes('>BI7I7I7', blob, pos)
    limit.advance, limit.free, limit.wait, limit.forget = unpack(algorithms[kind])
    limit.refund = refunds[kind]
    policy[l] = limit
  end
  policies[p] = policy
end

-- load reads a counter: its state flat in the array part, two numbers a limit.
local function load(i, policy)
  local value = values[i]
  local counter = {key = KEYS[i], policy = policy, length = value and #value}
  if not value then
    counter.damaged = foreign(KEYS[i])
  elseif #value ~= 7 + 14 * #policy then
    counter.damaged = true
  else
    local from
    counter.at, from = unpack_bytes('>I7', value)
    counter.damaged = counter.at > 9007199254740991
    for l = 1, 2 * #policy, 2 do
      counter[l], counter[l + 1], from = unpack_bytes('>I7I7', value, from)
    end
  end
  return counter
end

local states, records = {}, {}
for i = 1, count() do
  states[i] = load(i, policies[count()])
end

-- load_records reads callers' records once, however many groups share them.
local function load_records(place)
  if records[place] then return records[place] end
  local value = values[place]
  local r = {key = KEYS[place], entries = 0, text = '', damaged = not value and foreign(KEYS[place])}
  if value and #value >= 4 then
    r.entries, r.text = unpack_bytes('>I4', value), string.sub(value, 5)
  elseif value then
    r.damaged = true
  end
  records[place] = r
  return r
end

-- recall finds the live record of an id: what was done, its payload, its answer.
local function recall(r, id, now)
  local text = r.text
  local i = string.find(text, id, 1, true)
  while i and i + 41 <= #text do
    local payload, done, expires, length = unpack_bytes('>c16BI7I2', text, i + 16)
    if expires > now then return done, payload, string.sub(text, i + 42, i + 41 + length) end
    i = string.find(text, id, i + 1, true)
  end
end

-- without returns the records but for those of an id, live or not: a clock that
-- goes back must not find what was refunded.
local function without(entries, text, id)
  local i = string.find(text, id, 1, true)
  while i and i + 41 <= #text do
    local length = unpack_bytes('>I2', text, i + 40)
    entries, text = entries - 1, string.sub(text, 1, i - 1) .. string.sub(text, i + 42 + length)
    i = string.find(text, id, i, true)
  end
  return entries, text
end

-- remember plans a record behind those that still live; nil: no room for it.
-- One that replaces another needs none.
local function remember(r, g, now, body, replaces)
  local entries, from = r.entries, 1
  while entries > 0 and #r.text >= from + 41 do
    local expires, length = unpack_bytes('>I7I2', r.text, from + 33)
    if expires > now then break end
    entries, from = entries - 1, from + 42 + length
  end
  local text = string.sub(r.text, from)
  if not replaces and (entries + 1 > g.max_entries or #text + 42 + #body > g.max_bytes) then return nil end
  if g.op == REFUND then entries, text = without(entries, text, g.id) end
  return entries + 1, text .. pack_bytes('>c16c16BI7I2', g.id, g.payload, g.op, now + g.ttl, #body) .. body
end

-- receipts reads out of an admission's answer when each charge was spent, and
-- false for one that was not; nil: the answer is damaged.
local function receipts(body, n)
  local spent, from = {}, 1
  for c = 1, n do
    if from + 8 > #body then return nil end
    local flag, at, limits
    flag, at, limits, from = unpack_bytes('>BI7B', body, from)
    spent[c], from = flag == 1 and at, from + 28 * limits
  end
  return from == #body + 1 and spent or nil
end

-- consider evaluates one charge without spending it: three numbers a limit,
-- spent, extra and how long it refuses; nil and why it cannot be evaluated.
local function consider(counter, cost, now)
  if counter.damaged then return nil, INCOMPATIBLE end
  local policy = counter.policy
  local written = counter.at or now
  local effective = written > now and written or now
  local plan = {counter = counter, cost = cost, effective = effective, passes = true}
  for l = 1, #policy do
    local limit = policy[l]
    local s, e = limit.advance(limit.quota, limit.period, limit.refill,
      counter[2 * l - 1] or 0, counter[2 * l] or 0, written, effective)
    if not s then return nil, INCOMPATIBLE end
    local retry = 0
    if cost > limit.free(limit.quota, limit.period, s, e, effective) and cost > 0 then
      retry = limit.wait(limit.quota, limit.period, limit.refill, s, e, effective, cost) - now
      plan.passes = false
    end
    plan[3 * l - 2], plan[3 * l - 1], plan[3 * l] = s, e, retry
  end
  if written - now > policy.regression then return nil, CLOCK_UNSAFE end
  return plan
end

-- figures describes a plan for the answer, after spending if it is spent.
local function figures(plan, spent, now)
  local policy = plan.counter.policy
  local out = {pack_bytes('>BI7B', plan.passes and 1 or 2, plan.effective, #policy)}
  for l = 1, #policy do
    local limit = policy[l]
    local s, e = plan[3 * l - 2], plan[3 * l - 1]
    if spent and plan.passes then s = s + plan.cost end
    local room = limit.free(limit.quota, limit.period, s, e, plan.effective)
    local more, whole = 0, 0
    if room < limit.quota then
      if room < 0 then room = 0 end
      more = limit.wait(limit.quota, limit.period, limit.refill, s, e, plan.effective, room + 1) - now
      whole = limit.wait(limit.quota, limit.period, limit.refill, s, e, plan.effective, limit.quota) - now
    end
    out[l + 1] = pack_bytes('>I7I7I7I7', room, plan[3 * l], more, whole)
  end
  return table.concat(out)
end

-- give_back plans the refund of a cost that was spent at the instant `at`.
local function give_back(plan, cost, at)
  local policy = plan.counter.policy
  for l = 1, #policy do
    local limit, s, e = policy[l], plan[3 * l - 2], plan[3 * l - 1]
    plan[3 * l - 2], plan[3 * l - 1] = limit.refund(limit.period, limit.refill, s, e, at, plan.effective, cost)
    plan.changed = plan.changed or plan[3 * l - 2] ~= s
  end
end

-- spend changes the counter's state in memory; the writing comes last.
local function spend(plan, now)
  local counter = plan.counter
  counter.at, counter.last = plan.effective, now
  for l = 1, #counter.policy do
    counter[2 * l - 1], counter[2 * l] = plan[3 * l - 2] + plan.cost, plan[3 * l - 1]
  end
end

local FAILED = pack_bytes('>BI7B', 0, 0, 0)
local any_spent = false

-- decide answers one group.
local function decide(g)
  local now = clock == 0 and server or g.now
  if server >= g.fence then return pack_bytes('B', EXPIRED) end
  local r = g.place > 0 and load_records(g.place)
  local refund, undone = r and g.op == REFUND, nil
  if r then
    if r.damaged then return pack_bytes('B', INCOMPATIBLE) end
    local done, payload, body = recall(r, g.id, now)
    if done then
      if payload ~= g.payload or (done == REFUND and not refund) then return pack_bytes('B', MISMATCH) end
      if done == g.op then return pack_bytes('B', REPLAYED) .. body end
      undone = done == TAKE and receipts(body, #g)
      if not undone then return pack_bytes('B', INCOMPATIBLE) end
    end
  end
  if now > server + skew or now < server - skew then return pack_bytes('B', CLOCK_UNSAFE) end

  local plans, commits, spends = {}, refund or g.op == TAKE, refund
  for c = 1, #g do
    local charge = g[c]
    local plan, why = consider(states[charge.counter], refund and 0 or charge.cost, now)
    if plan and refund then
      local at = charge.receipt > 0 and charge.receipt
      if undone then at = undone[c] end
      if at then give_back(plan, charge.cost, at) end
    elseif plan then
      if plan.passes then
        spends = true
      elseif charge.shadow == 0 then
        commits = false
      end
    elseif charge.shadow == 0 then
      return pack_bytes('B', why)
    end
    plans[c] = plan or false
  end
  spends = spends and commits

  local body = {}
  for c = 1, #g do
    body[c] = plans[c] and figures(plans[c], spends, now) or FAILED
  end
  body = table.concat(body)
  if not spends then return pack_bytes('B', UNSPENT) .. body end
  if r then
    local entries, text = remember(r, g, now, body, undone)
    if not entries then return pack_bytes('B', UNRECORDABLE) end
    r.entries, r.text, r.ttl = entries, text, math.max(r.ttl or 0, g.key_ttl)
  end
  for c = 1, #g do
    local plan = plans[c]
    if plan and plan.passes and (plan.changed or not refund) then spend(plan, now) end
  end
  any_spent = true
  return pack_bytes('B', SPENT) .. body
end

local answers = {}
for n = 1, count() do
  local g = {}
  g.op, g.now, g.fence, g.place, pos = unpack_bytes('>BI7I7I2', blob, pos)
  if g.place > 0 then
    g.id, g.payload, g.ttl, g.max_entries, g.max_bytes, g.key_ttl, pos =
      unpack_bytes('>c16c16I7I4I4I7', blob, pos)
  end
  for c = 1, count() do
    local charge = {}
    charge.counter, charge.shadow, charge.cost, charge.receipt, pos = unpack_bytes('>I2BI7I7', blob, pos)
    g[c] = charge
  end
  answers[n] = decide(g)
end

local reply = answer(table.concat(answers), any_spent)
for _, r in pairs(records) do
  if r.ttl then
    call('SET', r.key, pack_bytes('>I4', r.entries) .. r.text, 'PX', r.ttl)
  end
end
for i = 1, #states do
  local counter = states[i]
  if counter.last then
    local policy, state, until_fresh = counter.policy, {pack_bytes('>I7', counter.at)}, 0
    for l = 1, #policy do
      local s, e = counter[2 * l - 1], counter[2 * l]
      state[l + 1] = pack_bytes('>I7I7', s, e)
      until_fresh = math.max(until_fresh, policy[l].forget(policy[l].period, policy[l].refill, s, e, counter.at))
    end
    keep(counter.key, counter.length, table.concat(state), until_fresh - counter.last + policy.safety, policy.grace)
  end
end
return reply
