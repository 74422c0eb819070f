-- The quick way, for most releases: there is no waiter, and no other holder. The text that follows this one does the same, and more
-- slowly.

do
  local key, id = KEYS[1], ARGV[1]
  if ARGV[2] == '0' and not ARGV[3] then
    local seen = redis.call('HMGET', key, 'hn', 'f', 'h:' .. id, 'b:' .. id)
    if seen[1] == '1' and not seen[2] and seen[3] and not seen[4] then
      local time = redis.call('TIME')
      local now = time[1] * 1000 + time[2] / 1000
      -- Compared first: a text that no script writes is an error, and then nothing has changed.
      local was_there = tonumber(string.match(seen[3], '^%a (%d+) ')) > now and 1 or 0
      redis.call('HDEL', key, 'h:' .. id, 'o:' .. id, 'w', 'hn', 'm', 'l')
      return was_there
    end
  end
end
