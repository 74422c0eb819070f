-- Says whether a try to write may get the lock: not while each holder's lease goes on. Looks at three fields, however many there are. Changes nothing.
--
-- In: KEYS[1] the lock
-- Out: 1, or 0 for a lock that is held
local held = redis.call('HMGET', KEYS[1], 'hn', 'm', 'l')
local holders, first, longest = tonumber(held[1] or 0), tonumber(held[2] or 0), tonumber(held[3] or 0)
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
-- An end that lies further ahead than the longest lease was written before the clock was set back: a try finds out.
return holders > 0 and first > now and first <= now + longest and 0 or 1
