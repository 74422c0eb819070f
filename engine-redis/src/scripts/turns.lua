-- The holders, and the turns of the waiters.

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

-- The waiter that stands behind a holder leaves with that holder, unless by now it asks by itself.
local function remove_stander(id)
  local behind = get('b:' .. id)
  if not behind then return end
  local waits = read_waiter(behind)
  if waits and waits.behind == id then forget_waiter(behind, waits) end
  del('b:' .. id)
end

local function remove_holder(id)
  remove_stander(id)
  del('h:' .. id)
  del('o:' .. id)
  if add('hn', -1) == 0 then
    del('w')
    del('hn')
    del('m')
    del('l')
  end
end

-- Makes a holder's lease count from now. A client names the same lease in all requests of one acquisition: so no lease ends earlier by
-- this, and `m` is still not later than the first end. For the same reason `l` does not grow here; if it did and were not written, the
-- holders would be looked through as after a clock that was set back, and nothing would come of it.
local function prolong(id, held, lease)
  held.expires, held.lease = now + lease, lease
  write_holder(id, held)
  set('l', whole(math.max(num('l'), lease)))
  outlive(lease)
end

local function is_free(mode)
  if mode == 'r' then return not get('w') end
  return num('hn') == 0
end

-- Ends the leases that are over. Looks through the holders only when the first of their leases may be over.
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

-- Returns 1 if a waiter other than `own` conflicts with this mode, otherwise 0.
local function is_contended(mode, own)
  local rivals = mode == 'w' and num('k') or num('kw')
  local waits = own and read_waiter(own)
  if waits and (mode == 'w' or waits.mode == 'w') then rivals = rivals - 1 end
  return rivals > 0 and 1 or 0
end

-- Does the same, and does not count the dead: it forgets those that it meets. A renewal must not be told of them, because no other request may come that would
-- forget them, and they would keep the readers of its client out. Looks no further than to the first that is alive and conflicts.
local function is_contended_now(mode, own)
  local id, step = is_contended(mode, own) == 1 and after('', 1), walk()
  local found = 0
  while id and found == 0 do
    step()
    local waits, next = read_waiter(id), after(id, 1)
    if waits.alive <= now then
      forget_waiter(id, waits)
    elseif id ~= own and (mode == 'w' or waits.mode == 'w') then
      found = 1
    end
    id = next
  end
  follow_clock()
  return found
end

-- Makes an acquisition a holder. Its token is the server's time where that is larger than the last token: so tokens go on growing also
-- after a loss of all data.
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

-- Prepares the message to a waiter that may enter. Returns 'told'; or 'deaf' if the message would not be heard; or 'asks' for a waiter
-- that asks by itself: its turn lasts until its next question.
local function tell(id, mode, token)
  local channel = words(get('o:' .. id))[2]
  if channel == '-' then return 'asks' end
  local to_waiter = message(channel, id .. ' ' .. token .. ' ' .. is_contended(mode, id) .. ' ' .. key)
  if not to_waiter then return 'deaf' end
  messages[#messages + 1] = to_waiter
  return 'told'
end

-- Lets in every waiter that may enter: the first in the queue, and readers behind a reader. `own` is asking, and needs no message.
-- A waiter whose client would not hear the message keeps its place, and the next one goes first: the client died, or lost its connection.
local function settle(own)
  reap()
  local id, step = after('', 1), walk()
  while id do
    step()
    local waits, next = read_waiter(id), after(id, 1)
    if waits.alive <= now then
      forget_waiter(id, waits)
    else
      if not is_free(waits.mode) then break end
      if waits.behind == '-' then
        local token = whole(math.max(num('t') + 1, micros))
        local heard = id == own and 'told' or tell(id, waits.mode, token)
        if heard == 'asks' then break end
        if heard == 'told' then
          remove_waiter(id, waits)
          enter(id, waits.mode, waits.lease)
        end
      end
    end
    id = next
  end
  follow_clock()
end

-- Removes what an acquisition has in the store. Returns whether there was a grant that is not over, or a place.
local function leave(id)
  local held, waits = read_holder(id), read_waiter(id)
  if held then remove_holder(id) end
  if waits then forget_waiter(id, waits) end
  return (held and held.expires > now) or waits ~= nil
end
