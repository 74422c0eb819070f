-- Says whether a try to write may get the lock: not while each holder's lease goes on. Looks at two fields, however many there are. Changes nothing.
--
-- In: KEYS[1] the lock
-- Out: 1, or 0 for a lock that is held
local held = redis.call('HMGET', KEYS[1], 'hn', 'm')
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
return tonumber(held[1] or 0) > 0 and tonumber(held[2] or 0) > now and 0 or 1
