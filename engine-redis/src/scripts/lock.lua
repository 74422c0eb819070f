-- What all operations share. One lock is one hash. Every time in it is the server's, in milliseconds since 1970.
--
--   t            the last token
--   h:<id>       a holder: mode, expires, lease, token, since, whether it was revoked
--   w            1 if the holder is a writer
--   hn           how many holders there are
--   m, l         no holder's lease ends before m; none is longer than l
--   a:<id>       a waiter: mode, until when it counts as alive, lease, since, ticket, the holder it stands behind, its number
--   q:<i>        a place in the queue, for f <= i < n: id, ticket, number. Nobody is there any more if a:<id> is gone, or has
--                another number, because it came again
--   f, n, j      the first and the next place, and the last number
--   k, kw        how many wait; how many of them to write
--   o:<id>       owner and channel of a holder or waiter
--   b:<id>       who stands behind this holder, waiting, of the same client
--   x:<id>       an acquisition that was undone before it arrived: it stays undone until then
--   e            when the whole hash expires, at the earliest
--
-- Invariants. Holders are one writer, or readers only. Tickets never fall from one place to the next. Who waits has one
-- place. Each grant takes a token larger than every one before.

local key = KEYS[1]
local time = redis.call('TIME')
local micros = time[1] * 1000000 + time[2]
local now = time[1] * 1000 + math.floor(time[2] / 1000)

-- Whether somebody's time lies further ahead than anybody writes it: then the clock was set back. See `follow_clock`.
local was_set_back = false

-- The hash outlives everybody in it by this, so that the last token is remembered and nothing stays for ever.
local RETENTION = 60000

-- What was read so far, as it shall be; false for what is not there. All of it is written at the end: so a script that fails half-way,
-- because it found something that no script writes, has changed nothing and told nobody.
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
local function whole(value) return string.format('%.0f', value) end

local function add(field, by)
  local sum = num(field) + by
  set(field, whole(sum))
  return sum
end

-- Redis takes so many arguments at once, and some more.
local MOST = 1000
local function write_all(command, words)
  for first = 1, #words, MOST do
    redis.call(command, key, unpack(words, first, math.min(first + MOST - 1, #words)))
  end
end

-- Writes what has changed, then tells those who were let in. What a script answers goes through here.
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
  -- What is written stays written, whether it can be told or not: who is not told asks.
  for _, message in ipairs(messages) do redis.pcall(unpack(message)) end
  return answer
end

local function words(text)
  local found = {}
  for word in string.gmatch(text, '%S+') do found[#found + 1] = word end
  return found
end

local function outlive(lease)
  if num('e') < now + lease + RETENTION / 2 then set('e', whole(now + lease + RETENTION)) end
end

local function read_holder(id)
  local text = get('h:' .. id)
  if not text then return nil end
  local word = words(text)
  local lease = tonumber(word[3])
  -- A clock that was set back must not prolong a lease.
  local expires = math.min(tonumber(word[2]), now + lease)
  return { mode = word[1], expires = expires, lease = lease, token = word[4], since = word[5], revoked = word[6] }
end

local function write_holder(id, held)
  local words = { held.mode, whole(held.expires), whole(held.lease), held.token, held.since, held.revoked }
  set('h:' .. id, table.concat(words, ' '))
end

local function remove_holder(id)
  del('h:' .. id)
  del('o:' .. id)
  if get('b:' .. id) then del('b:' .. id) end
  if add('hn', -1) == 0 then
    del('w')
    del('hn')
    del('m')
    del('l')
  end
end

local function read_waiter(id)
  local text = get('a:' .. id)
  if not text then return nil end
  local word = words(text)
  local lease = tonumber(word[3])
  local alive = tonumber(word[2])
  if alive > now + lease then
    was_set_back, alive = true, now + lease
  end
  return { mode = word[1], alive = alive, lease = lease, since = word[4], ticket = word[5], behind = word[6],
    number = word[7] }
end

local function write_waiter(id, waits)
  local words = { waits.mode, whole(waits.alive), whole(waits.lease), waits.since, waits.ticket, waits.behind, waits.number }
  set('a:' .. id, table.concat(words, ' '))
end

-- Its place stays, and is passed over: finding it would cost a walk along the queue.
local function remove_waiter(id, mode)
  del('a:' .. id)
  if mode == 'w' then add('kw', -1) end
  if add('k', -1) == 0 then
    del('k')
    del('kw')
  end
end

local function is_free(mode)
  if mode == 'r' then return not get('w') end
  return num('hn') == 0
end

-- Ends the leases that are over. Readers are looked through only when the first of them may be.
local function reap()
  local first = num('m')
  if num('hn') == 0 then return end
  if first > now + num('l') then was_set_back = true end
  if first > now and not was_set_back then return end
  local earliest = nil
  local ids = {}
  for _, field in ipairs(redis.call('HKEYS', key)) do
    if string.sub(field, 1, 2) == 'h:' then ids[#ids + 1] = string.sub(field, 3) end
  end
  for _, id in ipairs(ids) do
    local held = read_holder(id)
    if held and held.expires <= now then
      remove_holder(id)
    elseif held then
      write_holder(id, held)
      earliest = math.min(earliest or held.expires, held.expires)
    end
  end
  if earliest then set('m', whole(earliest)) end
end

-- Whether somebody waits who conflicts with this mode, `own` aside.
local function is_contended(mode, own)
  local rivals = mode == 'w' and num('k') or num('kw')
  local waits = own and read_waiter(own)
  if waits and (mode == 'w' or waits.mode == 'w') then rivals = rivals - 1 end
  return rivals > 0 and 1 or 0
end

-- The token is the server's time where that is larger than the last one: so it goes on growing also after a loss of all data.
local function enter(id, mode, lease)
  local token = whole(math.max(num('t') + 1, micros))
  local expires = now + lease
  write_holder(id, { mode = mode, expires = expires, lease = lease, token = token, since = whole(now), revoked = '0' })
  set('t', token)
  if mode == 'w' then set('w', '1') end
  local is_alone = add('hn', 1) == 1
  set('m', whole(is_alone and expires or math.min(num('m'), expires)))
  set('l', whole(is_alone and lease or math.max(num('l'), lease)))
  outlive(lease)
  return token
end

-- Who is at a place: nobody if it was left.
local function who_is_at(field)
  local word = words(get(field))
  local waits = read_waiter(word[1])
  if waits and waits.number ~= word[3] then waits = nil end
  return word[1], waits
end

local function ticket_at(place) return tonumber(words(get('q:' .. whole(place)))[2]) end

-- After the clock was set back: nobody may be alive for longer, and nobody's ticket be larger, than it could be if it had been
-- written now. Otherwise the dead would keep their places until the clock shows that time again, and whoever comes meanwhile
-- would go before those who wait. `reap` does the same for holders.
local function follow_clock()
  if not was_set_back then return end
  was_set_back = false
  for place = num('f'), num('n') - 1 do
    local field = 'q:' .. whole(place)
    local word, _, waits = words(get(field)), who_is_at(field)
    local ticket = whole(math.min(tonumber(word[2]), micros))
    set(field, word[1] .. ' ' .. ticket .. ' ' .. word[3])
    if waits then
      waits.ticket = ticket
      write_waiter(word[1], waits)
    end
  end
end

-- Takes a place behind all tickets that are not larger. Those that the server gives out are the largest but for clients'
-- guesses of its time, so the walk is short.
local function join(id, mode, lease, ticket, alive, owner, channel, behind)
  local first, place = num('f'), num('n')
  -- A guess of the server's time may be wrong, but not ahead of it.
  ticket = math.min(ticket, micros)
  was_set_back = was_set_back or (place > first and ticket_at(place - 1) > micros)
  follow_clock()
  set('n', whole(place + 1))
  while place > first do
    if ticket_at(place - 1) <= ticket then break end
    set('q:' .. whole(place), get('q:' .. whole(place - 1)))
    place = place - 1
  end
  local number = whole(add('j', 1))
  set('q:' .. whole(place), id .. ' ' .. whole(ticket) .. ' ' .. number)
  set('o:' .. id, owner .. ' ' .. channel)
  write_waiter(id, { mode = mode, alive = now + alive, lease = lease, since = whole(now), ticket = whole(ticket), behind = behind, number = number })
  add('k', 1)
  if mode == 'w' then add('kw', 1) end
  outlive(lease)
end

-- Whether a waiter that may enter can be told so. One that asks by itself waits for its next question.
local function tell(id, mode, token)
  local channel = words(get('o:' .. id))[2]
  if channel == '-' then return 'asks' end
  local sharded = string.find(channel, '{', 1, true)
  channel = 'ylock:' .. channel
  local listeners = redis.call('PUBSUB', sharded and 'SHARDNUMSUB' or 'NUMSUB', channel)[2]
  if tonumber(listeners) == 0 then return 'deaf' end
  local text = id .. ' ' .. token .. ' ' .. is_contended(mode, id) .. ' ' .. key
  messages[#messages + 1] = { sharded and 'SPUBLISH' or 'PUBLISH', channel, text }
  return 'told'
end

-- Lets in whoever may: the first in the queue, and readers behind a reader. `own` is asking, and needs no message.
-- One that nobody would hear keeps its place, and the next one goes first: it died, or lost its connection.
local function settle(own)
  reap()
  local first, next = num('f'), num('n')
  local place, gapless = first, true
  while place < next do
    local field = 'q:' .. whole(place)
    local id, waits = who_is_at(field)
    local leaves = not waits
    if waits and waits.alive <= now then
      remove_waiter(id, waits.mode)
      del('o:' .. id)
      leaves = true
    elseif waits then
      if not is_free(waits.mode) then break end
      if waits.behind == '-' then
        local token = whole(math.max(num('t') + 1, micros))
        local heard = id == own and 'told' or tell(id, waits.mode, token)
        if heard == 'asks' then break end
        if heard == 'told' then
          remove_waiter(id, waits.mode)
          enter(id, waits.mode, waits.lease)
          leaves = true
        end
      end
    end
    if leaves and gapless then
      del(field)
      first = place + 1
    end
    gapless = gapless and leaves
    place = place + 1
  end
  if first == next then
    if next > 0 then
      del('f')
      del('n')
      del('j')
    end
  else
    set('f', whole(first))
    follow_clock()
  end
end

-- Closes the gaps that those leave who give up, before they are more than those who wait.
local function close_gaps()
  local first, next = num('f'), num('n')
  if next - first <= 2 * num('k') + 32 then return end
  local free = first
  for place = first, next - 1 do
    local field = 'q:' .. whole(place)
    local text, _, waits = get(field), who_is_at(field)
    del(field)
    if waits then
      set('q:' .. whole(free), text)
      free = free + 1
    end
  end
  set('n', whole(free))
end

-- Undoes what an acquisition has in the store. Who stood behind its grant goes too, unless it is `next`. Answers whether there
-- was a grant that is not over, or a place.
local function leave(id, next)
  local held, waits = read_holder(id), read_waiter(id)
  if held then
    local behind = get('b:' .. id)
    local stander = behind and behind ~= next and read_waiter(behind)
    if stander then
      remove_waiter(behind, stander.mode)
      del('o:' .. behind)
    end
    remove_holder(id)
  end
  if waits then
    remove_waiter(id, waits.mode)
    del('o:' .. id)
    close_gaps()
  end
  return (held and held.expires > now) or waits ~= nil
end

-- Remembers that an acquisition is undone, for requests of it that are still on their way; forgets those of long ago.
local function undo(id, milliseconds)
  for _, field in ipairs(redis.call('HKEYS', key)) do
    if string.sub(field, 1, 2) == 'x:' and num(field) <= now then del(field) end
  end
  set('x:' .. id, whole(now + milliseconds))
  outlive(milliseconds)
end
