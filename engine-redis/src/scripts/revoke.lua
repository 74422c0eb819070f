-- Marks a grant as revoked, so that its holder's next renewal finds out.
--
-- In: id. Out: 1 if this acquisition held the lock, 0 if not

local held = read_holder(ARGV[1])
if not held or held.expires <= now then return 0 end
held.revoked = '1'
write_holder(ARGV[1], held)
return finish(1)
