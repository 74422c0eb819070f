-- Those who wait.

local function read_waiter(id)
  local text = get('a:' .. id)
  if not text then return nil end
  local word = words(text)
  local lease = tonumber(word[3])
  local alive = tonumber(word[2])
  if alive > now + lease then
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

-- Levels of the queue: each has about a quarter of those of the level below.
local LEVELS, SHARE = 12, 4

-- Those who come after a waiter, or first if `id` is empty: one on each level.
local function links(id) return words(get(id == '' and 'f' or 'q:' .. id) or '') end

local function link(id, level, after)
  local all = links(id)
  all[level] = after
  set(id == '' and 'f' or 'q:' .. id, table.concat(all, ' '))
end

local function after(id, level)
  local found = links(id)[level]
  return found ~= '-' and found or nil
end

-- On each level who comes before a waiter with this ticket and number, or would; nobody is an empty id.
local function before(ticket, number)
  local found, at = {}, ''
  for level = LEVELS, 1, -1 do
    local candidate = after(at, level)
    while candidate do
      local waits = read_waiter(candidate)
      if waits.ticket > ticket or (waits.ticket == ticket and waits.number >= number) then break end
      at = candidate
      candidate = after(at, level)
    end
    found[level] = at
  end
  return found
end

local function add_waiter(id, waits)
  local found, rest = before(waits.ticket, waits.number), waits.number
  write_waiter(id, waits)
  for level = 1, LEVELS do
    link(id, level, after(found[level], level) or '-')
    link(found[level], level, id)
    if rest % SHARE ~= 0 then break end
    rest = rest / SHARE
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
    del('j')
  end
end

local function forget_waiter(id, waits)
  remove_waiter(id, waits)
  del('o:' .. id)
end

-- After the clock was set back: nobody may be alive for longer, and nobody's ticket be larger, than it could be if it had been
-- written now. Otherwise the dead would keep their places until the clock shows that time again, and whoever comes meanwhile
-- would go before those who wait. `reap` does the same for holders. Numbers keep the order of those whose tickets become the same.
local function follow_clock()
  if not was_set_back then return end
  was_set_back = false
  local id, number = after('', 1), 0
  while id do
    local waits = read_waiter(id)
    number = number + 1
    waits.ticket, waits.number = math.min(waits.ticket, micros), number
    write_waiter(id, waits)
    id = after(id, 1)
  end
  was_set_back = false
  if number > 0 then set('j', whole(number)) end
end

-- Takes a place behind all tickets that are not larger.
local function join(id, mode, lease, ticket, alive, owner, channel, behind)
  local last = before(math.huge, 0)[1]
  was_set_back = was_set_back or (last ~= '' and read_waiter(last).ticket > micros)
  follow_clock()
  set('o:' .. id, owner .. ' ' .. channel)
  add_waiter(id, {
    mode = mode, alive = now + alive, lease = lease, since = whole(now), behind = behind,
    -- A guess of the server's time may be wrong, but not ahead of it.
    ticket = math.min(ticket, micros), number = add('j', 1),
  })
  outlive(lease)
end
