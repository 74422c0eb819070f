-- Renews a grant, and shows what its holder wants to be shown: its mode, and who of the same client stands behind it.
--
-- In: id, mode, lease; and of the one behind, if any: id, mode, lease, ticket (or -), owner, channel, client.
-- Out: {1, contended} | {0, 'gone'} | {0, 'revoked'}

local id, mode, lease, behind = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4]
load({ 'h:' .. id, 'b:' .. id, 'w', 'hn', 'm', 'l', 'k', 'kw', 'e', 'xf', 'xn' })
local held = read_holder(id)
if not held or held.expires <= now then return { 0, 'gone' } end
-- It stays until its holder has heard of it and releases it: before that nobody may get in.
if held.revoked == '1' then return { 0, 'revoked' } end

-- Never the other way round: a copy of a renewal from before comes when other readers may be inside.
local downgraded = held.mode == 'w' and mode == 'r'
if downgraded then held.mode = 'r' end
prolong(id, held, lease)
forget_undone()

if get('b:' .. id) ~= (behind or false) then remove_stander(id) end
if behind and not is_undone(behind) then
  local waits = read_waiter(behind)
  if waits and waits.behind == id then
    waits.alive = held.expires
    write_waiter(behind, waits)
  elseif not waits and not read_holder(behind) then
    -- With its own lease: that is what its client believes in, once it is let in.
    join(behind, ARGV[5], tonumber(ARGV[6]), tonumber(ARGV[7]) or micros, lease, who_is(ARGV[8], ARGV[9], ARGV[10]), id)
    set('b:' .. id, behind)
  end
end
if downgraded then
  del('w')
  settle('')
end
return finish({ 1, is_contended(held.mode, behind) })
