-- Renews a grant, and shows what its holder wants to be shown: its mode, and who of the same client stands behind it.
--
-- In: id, mode, lease; and of the one behind, if any: id, mode, ticket (or -), owner, channel.
-- Out: {1, contended} | {0, 'gone'} | {0, 'revoked'}

local id, mode, lease, behind = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4]
load({ 'h:' .. id, 'b:' .. id, 'w', 'hn', 'm', 'l', 'k', 'kw', 'e' })
local held = read_holder(id)
if not held or held.expires <= now then return { 0, 'gone' } end
-- It stays until its holder has heard of it and releases it: before that nobody may get in.
if held.revoked == '1' then return { 0, 'revoked' } end

local downgraded = held.mode == 'w' and mode == 'r'
held.mode = mode
prolong(id, held, lease)

if get('b:' .. id) ~= (behind or false) then remove_stander(id) end
if behind and not is_undone(behind) then
  local waits = read_waiter(behind)
  if waits then
    waits.alive = now + lease
    write_waiter(behind, waits)
  elseif not read_holder(behind) then
    join(behind, ARGV[5], lease, tonumber(ARGV[6]) or micros, lease, ARGV[7], ARGV[8], id)
    set('b:' .. id, behind)
  end
end
if downgraded then
  del('w')
  settle('')
end
return finish({ 1, is_contended(mode, behind) })
