-- Says in which version all is kept below the prefix, unless that is said already: of clients that come at once the first decides. A script, and no
-- command alone, because it may write also where no memory is left.
--
-- In: KEYS[1] the hash that says it, ARGV[1] the version of this client
-- Out: the version that the hash says
local said = redis.call('HGET', KEYS[1], 'version')
if said then return said end
redis.call('HSET', KEYS[1], 'version', ARGV[1])
return ARGV[1]
