-- The quick way, for most acquisitions: there is no holder and no waiter, and nothing is remembered as undone. The text that follows
-- this one does the same, and more slowly. It says why a lock is refused that may have been thrown away: one without a last token.

do
  local key, id, mode, lease = KEYS[1], ARGV[1], ARGV[2], tonumber(ARGV[3])
  local seen = redis.call('HMGET', key, 'hn', 'f', 'xn', 't', 'e')
  if not (seen[1] or seen[2] or seen[3]) and (seen[4] or not eviction(ARGV[11])) then
    local time = redis.call('TIME')
    local now = time[1] * 1000 + math.floor(time[2] / 1000)
    local token = string.format('%.0f', math.max((seen[4] or 0) + 1, time[1] * 1000000 + time[2]))
    local expires = string.format('%.0f', now + lease)
    local held = mode .. ' ' .. expires .. ' ' .. lease .. ' ' .. token .. ' ' .. string.format('%.0f', now) .. ' 0'
    local words = { 'h:' .. id, held, 'o:' .. id, table.concat({ ARGV[8], ARGV[9], ARGV[10] }, ' '), 't', token, 'hn', '1', 'm', expires, 'l', ARGV[3] }
    if mode == 'w' then
      words[13], words[14] = 'w', '1'
    end
    redis.call('HSET', key, unpack(words))
    if tonumber(seen[5] or 0) < now + lease + 30000 then
      local gone = string.format('%.0f', now + lease + 60000)
      redis.call('HSET', key, 'e', gone)
      redis.call('PEXPIREAT', key, gone)
    end
    return { 'granted', token, 0 }
  end
end
