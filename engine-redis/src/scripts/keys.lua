-- Returns a page of the keys of locks: one step of a walk over all keys of the server. Changes nothing.
--
-- In: ARGV[1] where the walk stands, ARGV[2] the run of the server that said so, ARGV[3] the pattern of the keys, ARGV[4] how many keys
-- to look at, about
-- Out: {where the walk stands then, which is 0 at the end; this run of the server; keys}

-- Where a walk stands has a meaning only to the process of the server that said so. After a restart, and on a server that has taken over,
-- the walk begins anew: otherwise keys would be left out. A user of the server that may not ask for the run does without that.
local said = redis.pcall('INFO', 'server')
local run = type(said) == 'string' and string.match(said, 'run_id:(%x+)') or '-'
local from = run == ARGV[2] and ARGV[1] or '0'
-- Of one type only: what another program has stored under such a name is no lock.
local found = redis.call('SCAN', from, 'MATCH', ARGV[3], 'COUNT', ARGV[4], 'TYPE', 'hash')
return { found[1], run, found[2] }
