-- Renews a grant, and stores what its holder wants to be shown: its mode, and the waiter of the same client that stands behind it.
--
-- In: id, mode, lease; and of the waiter behind it, if any: id, mode, lease, ticket (or -), owner, channel, client.
-- Out: {1, contended} | {0, 'gone'} | {0, 'revoked'}

local id, mode, lease, behind = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4]
load({ 'h:' .. id, 'b:' .. id, 'w', 'hn', 'm', 'l', 'k', 'kw', 'e', 'xf', 'xn' })
local held = read_holder(id)
if not held or held.expires <= now then return { 0, 'gone' } end
-- A revoked grant stays until its holder has heard of it and releases it: before that no waiter that conflicts may get in.
if held.revoked == '1' then return { 0, 'revoked' } end

-- Never from reader to writer: a copy of an earlier renewal may come when other readers are inside.
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
    -- With the lease that the waiter asked for: its client counts on that one, once the waiter is let in.
    join(behind, ARGV[5], tonumber(ARGV[6]), tonumber(ARGV[7]) or micros, lease, who_is(ARGV[8], ARGV[9], ARGV[10]), id)
    set('b:' .. id, behind)
  end
end
if downgraded then
  del('w')
  settle('')
end
return finish({ 1, is_contended_now(held.mode, behind) })
