-- What the quick ways share. Each does for the usual case what the text behind it does for all, and in less time; a test compares. What is
-- not usual they leave to that text, before they change anything.

-- Returns the words about a waiter that is alive, though not for longer than if it had asked just now. Others are not usual: they are
-- forgotten, or made to follow a clock that was set back.
local function usual_waiter(text, now)
  local mode, alive, lease, since, ticket, number, behind =
    string.match(text or '', '^(%a) (%d+) (%d+) (%d+) (%d+) (%d+) (%S+)$')
  if not mode or tonumber(alive) <= now then return nil end
  if behind == '-' and tonumber(alive) > now + lease then return nil end
  return mode, lease, since, ticket, number, behind
end

-- Returns whether a queue has what these ways rely on: all of it, or nothing. What is wrong with it the text behind them says.
local function is_whole(k, f, z) return (k and f and z) or not (k or f or z) end

-- Writes fields and values in turn. `ends` is when the hash expires.
local function write_usual(fields, now, lease, ends)
  if tonumber(ends or 0) >= now + lease + RETENTION / 2 then return redis.call('HSET', KEYS[1], unpack(fields)) end
  local gone = whole(now + lease + RETENTION)
  redis.call('HSET', KEYS[1], 'e', gone, unpack(fields))
  redis.call('PEXPIREAT', KEYS[1], gone)
end
