-- The quick way, for most releases: there is no waiter, and no other holder. The text that follows this one does the same, and more
-- slowly.

do
  local key, id = KEYS[1], ARGV[1]
  if ARGV[2] == '0' and not ARGV[3] then
    local seen = redis.call('HMGET', key, 'hn', 'f', 'h:' .. id, 'b:' .. id)
    if seen[1] == '1' and not seen[2] and seen[3] and not seen[4] then
      local time = redis.call('TIME')
      local expires = string.match(seen[3], '^%a (%d+) ')
      redis.call('HDEL', key, 'h:' .. id, 'o:' .. id, 'w', 'hn', 'm', 'l')
      return tonumber(expires) > time[1] * 1000 + time[2] / 1000 and 1 or 0
    end
  end
end
