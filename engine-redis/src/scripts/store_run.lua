-- Stores the last run of a job, unless a later one is there: also a copy of this call that arrives late changes nothing then.
--
-- In: the run, how many bytes at its beginning are in the order of the runs, the milliseconds to keep it, and `accepts` if it may be stored
-- where the last one may have been thrown away. Out: 1 if it is stored, 0 if not, {'evicts', policy}

local stored = redis.call('HGET', KEYS[1], 'run')
-- As texts: the numbers in them have more digits than a number of this language knows.
if stored and string.sub(ARGV[1], 1, ARGV[2]) < string.sub(stored, 1, ARGV[2]) then return 0 end
local policy = not stored and eviction(ARGV[4])
if policy then return { 'evicts', policy } end
redis.call('HSET', KEYS[1], 'run', ARGV[1])
local time = redis.call('TIME')
redis.call('PEXPIREAT', KEYS[1], string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000) + ARGV[3]))
return 1
