-- The quick way for most releases that have a waiter: the only holder leaves, and the first waiter gets in, alone.

-- Returns the text of the fields `f` and `z` of a queue whose first waiter leaves it.
local function ends_without(first, links, f, z)
  -- It is the first on each of its levels.
  local levels = height(first)
  f = links .. string.sub(f, levels * (#first + 1))
  if levels == 1 then return f, z end
  for level, after in ipairs(words(links)) do
    if after == '-' then z = with_word(z, level, '-') end
  end
  return f, z
end

-- Returns the answer, or nothing if this way leads nowhere: then it has changed nothing.
local function hand_over()
  local key, id = KEYS[1], ARGV[1]
  if ARGV[2] ~= '0' or ARGV[3] then return nil end
  local hn, held, stander, k, kw, f, z, t, e =
    unpack(redis.call('HMGET', key, 'hn', 'h:' .. id, 'b:' .. id, 'k', 'kw', 'f', 'z', 't', 'e'))
  if hn ~= '1' or not held or stander or not k or not is_whole(k, f, z) then return nil end
  local ends_at = tonumber(string.match(held, '^%a (%d+) '))
  if not ends_at then return nil end
  local now, micros = clock()
  local first = string.match(f, '^%S+')
  local waits, links, who = unpack(redis.call('HMGET', key, 'a:' .. first, 'q:' .. first, 'o:' .. first))
  local mode, lease, _, _, _, behind = usual_waiter(waits, now)
  if behind ~= '-' or not links then return nil end
  local second = string.match(links, '^%S+')
  if second ~= '-' then
    local its_mode = usual_waiter(redis.call('HGET', key, 'a:' .. second), now)
    -- Readers get in together.
    if not its_mode or (mode == 'r' and its_mode == 'r') then return nil end
  end
  local rivals = mode == 'w' and k - 1 or tonumber(kw or 0)
  local token = whole(math.max((t or 0) + 1, micros))
  local to_first = message(string.match(who, '^%S+ (%S+)'), first .. ' ' .. token .. ' ' .. (rivals > 0 and 1 or 0) .. ' ' .. key)
  if not to_first then return nil end

  local expires = whole(now + lease)
  local enters = table.concat({ mode, expires, lease, token, whole(now), '0' }, ' ')
  local fields, gone =
    { 'h:' .. first, enters, 't', token, 'm', expires, 'l', lease }, { 'h:' .. id, 'o:' .. id, 'a:' .. first, 'q:' .. first }
  local function set(field, value)
    fields[#fields + 1], fields[#fields + 2] = field, value
  end
  local function del(field) gone[#gone + 1] = field end
  if mode == 'w' then set('w', '1') else del('w') end
  if second == '-' then
    for _, field in ipairs({ 'k', 'kw', 'j', 'f', 'z' }) do del(field) end
  else
    f, z = ends_without(first, links, f, z)
    set('f', f)
    set('z', z)
    set('k', k - 1)
    if mode == 'w' then set('kw', kw - 1) end
  end
  write_usual(fields, now, lease, e)
  redis.call('HDEL', key, unpack(gone))
  -- What is written stays written, whether or not the message can be sent: a waiter that gets no message asks.
  redis.pcall(unpack(to_first))
  return ends_at > now and 1 or 0
end

do
  local answer = hand_over()
  if answer then return answer end
end
