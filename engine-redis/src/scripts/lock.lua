-- The part that all operations share. One lock is one hash. Every time in it is the server's, in milliseconds since 1970.
--
--   t            the last token
--   h:<id>       a holder: mode, expires, lease, token, since, whether it was revoked
--   w            1 if the holder is a writer
--   hn           how many holders there are
--   m, l         no holder's lease ends before m; none is longer than l
--   a:<id>       a waiter: mode, until when it counts as alive, lease, since, ticket, number, the holder it stands behind (or -)
--   q:<id>       the next waiter after this one, or -, on each level of the queue that this waiter is part of
--   f, z         the first and the last waiter on each level
--   j            the last number that a waiter got
--   k, kw        how many waiters there are; how many of them wait to write
--   o:<id>       owner, channel and client of a holder or waiter; the client's name may have blanks in it
--   b:<id>       the waiter of the same client that stands behind this holder
--   x:<id>       until when this acquisition counts as undone: a request of it that arrives before then changes nothing
--   y:<i>        the ids of these, for xf <= i < xn, in the order in which they were undone
--   xf, xn       the number of the first of these, and the next number; without any of these there is neither
--   e            when the whole hash expires, at the earliest
--
-- Invariants. Holders are one writer, or readers only. Each grant takes a token larger than all before. A waiter has one place. The
-- queue is a skip list: its lowest level has all waiters, in the order of their tickets and, where these are equal, of their numbers;
-- each higher level has a part of the level below, in the same order. So joining with an old ticket and leaving from any place
-- cost the logarithm of the number of waiters; the first and the last are found at once. Nothing stays of a waiter that has left.

local key = KEYS[1]
local now, micros = clock()

-- True if a stored time lies further ahead than any script writes it: then the server's clock was set back. See `follow_clock`.
local was_set_back = false

-- `known` has the fields that were read so far, with the values that they shall have; false for a field that is not there. All changes
-- are written at the end: so a script that fails half-way, because it found something that no script writes, has changed nothing and
-- sent no message.
local known, changed, messages = {}, {}, {}

local function load(fields)
  local values = redis.call('HMGET', key, unpack(fields))
  for place, field in ipairs(fields) do known[field] = values[place] end
end

local function get(field)
  if known[field] == nil then known[field] = redis.call('HGET', key, field) end
  return known[field]
end

local function set(field, value)
  known[field] = value
  changed[field] = true
end

local function del(field) set(field, false) end
local function num(field) return tonumber(get(field) or 0) end

local function add(field, by)
  local sum = num(field) + by
  set(field, whole(sum))
  return sum
end

-- Redis takes this many arguments in one call, and some more.
local MOST = 1000
local function write_all(command, words)
  for first = 1, #words, MOST do
    redis.call(command, key, unpack(words, first, math.min(first + MOST - 1, #words)))
  end
end

-- Writes what has changed, then tells the waiters that were let in. A script that has set or deleted fields returns its answer through
-- here.
local function finish(answer)
  local values, gone = {}, {}
  for field in pairs(changed) do
    if known[field] then
      values[#values + 1] = field
      values[#values + 1] = known[field]
    else
      gone[#gone + 1] = field
    end
  end
  write_all('HSET', values)
  write_all('HDEL', gone)
  if changed['e'] then redis.call('PEXPIREAT', key, known['e']) end
  -- What is written stays written, whether or not the message can be sent: a waiter that gets no message asks.
  for _, message in ipairs(messages) do redis.pcall(unpack(message)) end
  return answer
end

local function outlive(lease)
  if num('e') < now + lease + RETENTION / 2 then set('e', whole(now + lease + RETENTION)) end
end

-- Returns whether an acquisition counts as undone: a request of it that comes too late changes nothing.
local function is_undone(id) return num('x:' .. id) > now end

-- Forgets the acquisitions that were undone long ago.
local function forget_undone()
  local first, next = num('xf'), num('xn')
  local before = first
  while first < next do
    local field = 'y:' .. whole(first)
    local old = get(field)
    if is_undone(old) then break end
    del('x:' .. old)
    del(field)
    first = first + 1
  end
  if first == before then return end
  set('xf', first < next and whole(first))
  set('xn', first < next and whole(next))
end

-- Remembers that an acquisition is undone, for requests of it that are still on their way.
local function undo(id, milliseconds)
  forget_undone()
  local next = num('xn')
  local until_then = whole(now + milliseconds)
  set('y:' .. whole(next), id)
  set('x:' .. id, until_then)
  set('xf', whole(num('xf')))
  set('xn', whole(next + 1))
  if num('e') < now + milliseconds then set('e', until_then) end
end
