-- The waiters and their queue.

local function read_waiter(id)
  local text = get('a:' .. id)
  if not text then return nil end
  local word = words(text)
  local lease = tonumber(word[3])
  local alive = tonumber(word[2])
  -- A waiter that stands behind a holder is alive for as long as that holder, whatever its own lease.
  if word[7] == '-' and alive > now + lease then
    was_set_back, alive = true, now + lease
  end
  return { mode = word[1], alive = alive, lease = lease, since = word[4], ticket = tonumber(word[5]), number = tonumber(word[6]),
    behind = word[7] }
end

local function write_waiter(id, waits)
  local words = { waits.mode, whole(waits.alive), whole(waits.lease), waits.since, whole(waits.ticket), whole(waits.number),
    waits.behind }
  set('a:' .. id, table.concat(words, ' '))
end

-- Returns the waiters that come next after a waiter, or first if `id` is empty: one on each level.
local function links(id) return words(get(id == '' and 'f' or 'q:' .. id) or '') end

local function link(id, level, after)
  local field = id == '' and 'f' or 'q:' .. id
  set(field, with_word(get(field) or '', level, after))
  -- Nothing is after the last.
  if after == '-' then set('z', with_word(get('z') or '', level, id == '' and '-' or id)) end
end

local function after(id, level)
  local found = links(id)[level]
  return found ~= '-' and found or nil
end

-- Counts the steps along the queue: links that no script has written could lead round and round, and keep the server from all else.
local function walk()
  local left = num('k')
  return function()
    left = left - 1
    if left < 0 then error('the queue is longer than those who wait') end
  end
end

local function ticket_of(id)
  local ticket, number = string.match(get('a:' .. id), '^%S+ %S+ %S+ %S+ (%S+) (%S+)')
  return tonumber(ticket), tonumber(number)
end

-- Returns for each level the waiter that comes, or would come, just before one with this ticket and number; an empty id if there is none.
local function before(ticket, number)
  local found, at, all, later, step = {}, '', links(''), '-', walk()
  for level = LEVELS, 1, -1 do
    local candidate = all[level] or '-'
    -- A waiter that was too late on a higher level is too late on this one.
    while candidate ~= '-' and candidate ~= later do
      local its_ticket, its_number = ticket_of(candidate)
      if its_ticket > ticket or (its_ticket == ticket and its_number >= number) then
        later = candidate
      else
        step()
        at, all = candidate, links(candidate)
        candidate = all[level]
      end
    end
    found[level] = at
  end
  return found
end

local function add_waiter(id, waits, found)
  write_waiter(id, waits)
  for level = 1, height(id) do
    link(id, level, after(found[level], level) or '-')
    link(found[level], level, id)
  end
  add('k', 1)
  if waits.mode == 'w' then add('kw', 1) end
end

local function remove_waiter(id, waits)
  local found = before(waits.ticket, waits.number)
  for level, next in ipairs(links(id)) do link(found[level], level, next) end
  del('a:' .. id)
  del('q:' .. id)
  if waits.mode == 'w' then add('kw', -1) end
  if add('k', -1) == 0 then
    del('k')
    del('kw')
    del('f')
    del('z')
    del('j')
  end
end

local function forget_waiter(id, waits)
  remove_waiter(id, waits)
  del('o:' .. id)
end

-- After the clock was set back: no waiter may count as alive for longer, and no ticket be larger, than if it had been written now.
-- Otherwise dead waiters would keep their places until the clock shows that time again, and waiters that come meanwhile would go before
-- those that were there already. `reap` does the same for holders. Numbers keep the order of waiters whose tickets become equal.
local function follow_clock()
  if not was_set_back then return end
  was_set_back = false
  local id, number, step = after('', 1), 0, walk()
  while id do
    step()
    local waits = read_waiter(id)
    number = number + 1
    waits.ticket, waits.number = math.min(waits.ticket, micros), number
    write_waiter(id, waits)
    id = after(id, 1)
  end
  was_set_back = false
  -- The order does not need this: each waiter took its number from `j`, so `j` is not smaller than the new numbers. It keeps `j` the
  -- last number that a waiter has.
  if number > 0 then set('j', whole(number)) end
end

-- Returns for each level the last waiter; an empty id if there is none.
local function last()
  local all, found = words(get('z') or ''), {}
  for level = 1, LEVELS do found[level] = (all[level] or '-') ~= '-' and all[level] or '' end
  if (found[1] == '') ~= (num('k') == 0) or after(found[1], 1) then error('the last waiter is another') end
  return found
end

-- Returns the last waiter on each level. A joining waiter forgets dead waiters at the end: these are passed over only when their turn
-- comes, and would stay for as long as a waiter before them waits.
local function last_alive()
  while true do
    local found = last()
    if found[1] == '' then return found end
    local waits = read_waiter(found[1])
    if waits.alive > now then return found end
    forget_waiter(found[1], waits)
  end
end

-- Gives an acquisition a place in the queue, behind all tickets that are not larger than its own.
local function join(id, mode, lease, ticket, alive, who, behind)
  -- A client's guess of the server's time may be wrong, but must not be ahead of it.
  ticket = math.min(ticket, micros)
  local found = last_alive()
  local last = found[1] ~= '' and ticket_of(found[1]) or 0
  was_set_back = was_set_back or last > micros
  follow_clock()
  local number = add('j', 1)
  if last > ticket then found = before(ticket, number) end
  set('o:' .. id, who)
  add_waiter(id, {
    mode = mode, alive = now + alive, lease = lease, since = whole(now), ticket = ticket, number = number, behind = behind,
  }, found)
  outlive(lease)
end
