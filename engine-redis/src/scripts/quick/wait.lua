-- The quick way for most waiters: a writer is inside, and its lease goes on. So no waiter gets in, whatever it wants: the acquisition joins
-- the queue behind all others, or is in it already and stays there.

-- Returns the fields of a waiter that asks again, and its ticket.
local function stay(id, own, alive, now)
  local mode, lease, since, ticket, number, behind = usual_waiter(own, now)
  -- What stood behind a holder is still announced with that holder.
  if behind ~= '-' then return nil end
  return { 'a:' .. id, table.concat({ mode, alive, lease, since, ticket, number, '-' }, ' ') }, ticket
end

-- Returns the links of a queue at whose end an acquisition has joined.
local function links_with(id, queue)
  local levels, tail = height(id), queue.tail
  local ends = string.sub(string.rep('- ', levels), 1, -2)
  if levels == 1 and tail then
    -- One word in the place of another: three of four come here.
    return { ['q:' .. id] = ends, ['q:' .. tail] = id .. string.sub(queue.links, 2), z = id .. string.sub(queue.z, #tail + 1) }
  end
  local links, tails = { f = queue.f or '' }, words(queue.z or '')
  if tail then links['q:' .. tail] = queue.links end
  for level = 1, levels do
    local last = tails[level] or '-'
    local field = last == '-' and 'f' or 'q:' .. last
    links[field] = with_word(links[field] or redis.call('HGET', KEYS[1], field), level, id)
    tails[level] = id
  end
  links['q:' .. id], links.z = ends, table.concat(tails, ' ')
  return links
end

-- Returns the fields of a queue at whose end an acquisition has joined, and its ticket.
local function join_last(id, alive, queue, now, micros)
  local mode, ticket = ARGV[2], whole(math.min(tonumber(ARGV[6]) or micros, micros))
  if queue.tail then
    local _, _, _, its_ticket = usual_waiter(queue.last, now)
    if not its_ticket or tonumber(its_ticket) > tonumber(ticket) then return nil end
  end
  local number = (queue.j or 0) + 1
  local waits = table.concat({ mode, alive, ARGV[3], whole(now), ticket, number, '-' }, ' ')
  local fields = { 'a:' .. id, waits, 'j', number, 'k', (queue.k or 0) + 1 }
  if mode == 'w' then fields[7], fields[8] = 'kw', (queue.kw or 0) + 1 end
  for field, text in pairs(links_with(id, queue)) do
    fields[#fields + 1], fields[#fields + 2] = field, text
  end
  return fields, ticket
end

-- Returns the answer, or nothing if this way leads nowhere: then it has changed nothing.
local function wait()
  local key, id, lease = KEYS[1], ARGV[1], tonumber(ARGV[3])
  local w, m, l, xn, held, own, k, kw, j, f, z, t, e =
    unpack(redis.call('HMGET', key, 'w', 'm', 'l', 'xn', 'h:' .. id, 'a:' .. id, 'k', 'kw', 'j', 'f', 'z', 't', 'e'))
  if not w or xn or held or ARGV[4] ~= 'queue' then return nil end
  if not (m and l and is_whole(k, f, z)) then return nil end
  local now, micros = clock()
  local writer_ends = tonumber(m)
  if writer_ends <= now or writer_ends > now + l then return nil end
  local queue = { k = k, kw = kw, j = j, f = f, z = z }
  if k then
    local first, tail = string.match(f, '^%S+'), string.match(z, '^%S+')
    local ends = redis.call('HMGET', key, 'a:' .. first, 'a:' .. tail, 'q:' .. tail)
    -- Behind the last there is none.
    if not usual_waiter(ends[1], now) or string.match(ends[3] or '', '^%S+') ~= '-' then return nil end
    queue.tail, queue.last, queue.links = tail, ends[2], ends[3]
  end
  local alive = whole(now + ARGV[7])
  local fields, ticket
  if own then
    fields, ticket = stay(id, own, alive, now)
  else
    fields, ticket = join_last(id, alive, queue, now, micros)
  end
  if not fields then return nil end
  fields[#fields + 1], fields[#fields + 2] = 'o:' .. id, who_is(ARGV[8], ARGV[9], ARGV[10])
  write_usual(fields, now, lease, e)
  return { 'queued', ticket, writer_ends - now .. '', t or '0' }
end

do
  local answer = wait()
  if answer then return answer end
end
