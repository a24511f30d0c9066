-- What every script shares: the head of a batch, and the session record that
-- makes a sender's resend harmless.
--
-- Head of ARGV[1]: clock, skew, session, sequence, record TTL, hash of the batch
--   clock     0: the server's TIME is now; 1: each group brings its own
--   skew      ms that a group's now may stand away from TIME
--   session   0: no record; 1: record if something is spent; 2: record anyway
-- The record: sequence, hash, and the answers of the newest batch.
-- A reply: status of the batch, TIME in ms, answers.
local call, unpack_bytes, pack_bytes = redis.call, struct.unpack, struct.pack
local floor = math.floor

local EXECUTED, RECORDED, STALE = 0, 1, 2
local UNSPENT, SPENT, EXPIRED, CLOCK_UNSAFE, INCOMPATIBLE, MISMATCH, UNRECORDABLE, REPLAYED = 0, 1, 2, 3, 4, 5, 6, 7

local time = call('TIME')
local server = time[1] * 1000 + floor(time[2] / 1000)
local blob = ARGV[1]
local clock, skew, session, sequence, record_ttl, hash, pos = unpack_bytes('>BI7BI7I7c8', blob)
local values = call('MGET', unpack(KEYS))

-- earlier answers a batch that needs no execution: it was executed before, or
-- a newer one was.
local function earlier()
  local record = session > 0 and values[#KEYS]
  if not record then return nil end
  if #record < 15 then return pack_bytes('>BI7', STALE, server) end
  local newest, its_hash = unpack_bytes('>I7c8', record)
  if newest < sequence then return nil end
  if newest == sequence and its_hash == hash then
    return pack_bytes('>BI7', RECORDED, server) .. string.sub(record, 16)
  end
  return pack_bytes('>BI7', STALE, server)
end

-- foreign tells a key of another type from a missing one: MGET answers nil for both.
local function foreign(key)
  return call('PTTL', key) ~= -2
end

-- answer records the answers, if they must be, and returns the reply.
local function answer(answers, spent)
  if session == 2 or (session == 1 and spent) then
    call('SET', KEYS[#KEYS], pack_bytes('>I7c8', sequence, hash) .. answers, 'PX', record_ttl)
  end
  return pack_bytes('>BI7', EXECUTED, server) .. answers
end

-- unsafe says whether a group's own now stands too far from TIME.
local function unsafe(now)
  return now > server + skew or now < server - skew
end

-- keep writes a counter's state in place while its TTL suffices, and anew with
-- some to spare where it does not, or where there is none.
local function keep(key, exists, state, lifetime, grace)
  if exists and call('PTTL', key) >= lifetime then
    call('SETRANGE', key, 0, state)
  else
    call('SET', key, state, 'PX', lifetime + grace)
  end
end
