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

local EXECUTED, RECORDED, STALE = 0, 1, 2
local UNSPENT, SPENT, EXPIRED, CLOCK_UNSAFE, INCOMPATIBLE, MISMATCH, UNRECORDABLE, REPLAYED = 0, 1, 2, 3, 4, 5, 6, 7

local time = call('TIME')
local server = time[1] * 1000 + math.floor(time[2] / 1000)
local blob = ARGV[1]
local clock, skew, session, sequence, record_ttl, hash, pos = unpack_bytes('>BI7BI7I7c8', blob)
local values = call('MGET', unpack(KEYS))

-- A batch that was executed before is answered as then; one that is older than
-- the sender's newest is refused.
local record = session > 0 and values[#KEYS]
if record then
  if #record < 15 then return pack_bytes('>BI7', STALE, server) end
  local newest, its_hash = unpack_bytes('>I7c8', record)
  if newest == sequence and its_hash == hash then
    return pack_bytes('>BI7', RECORDED, server) .. string.sub(record, 16)
  elseif newest >= sequence then
    return pack_bytes('>BI7', STALE, server)
  end
end

-- keep writes a value in place while its TTL suffices and its length has not
-- changed, and anew with some to spare where they do not. A missing key has a
-- TTL of -2, one that would live for ever of -1.
local function keep(key, length, value, lifetime, grace)
  if length == #value and call('PTTL', key) >= lifetime then
    call('SETRANGE', key, 0, value)
  else
    call('SET', key, value, 'PX', lifetime + grace)
  end
end

-- answer records the answers, if they must be, and returns the reply.
local function answer(answers, spent)
  if session == 2 or (session == 1 and spent) then
    keep(KEYS[#KEYS], record and #record, pack_bytes('>I7c8', sequence, hash) .. answers, record_ttl, record_ttl)
  end
  return pack_bytes('>BI7', EXECUTED, server) .. answers
end
