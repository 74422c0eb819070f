-- Gives back a grant, leaves the queue, or undoes an acquisition of which a request may still be on its way. Waiters that may enter
-- then are let in and told.
--
-- In: id, for how long such a request may be on its way (or 0); and of an acquisition that joins the queue at the same time, if any: id,
-- mode, lease, ticket (or -), for how long it counts as alive, owner, channel, client, and whether it `accepts` that locks are thrown away.
-- Out: 1 if there was a grant that is not over, or a place; 0 if not

local id, late, next = ARGV[1], tonumber(ARGV[2]), ARGV[3]
load({ 'h:' .. id, 'a:' .. id, 'o:' .. id, 'b:' .. id, 'w', 'hn', 'm', 'l', 'f', 'z', 'j', 'k', 'kw', 't', 'e', 'x:' .. (next or '') })
if next and get('b:' .. id) == next then
  -- `next` stands on its own from now on.
  local waits = read_waiter(next)
  if waits then
    waits.behind = '-'
    write_waiter(next, waits)
  end
end
local was_there = leave(id)
if late > 0 then undo(id, late) end
-- A copy of this request may arrive after `next` was given back, or gave up. And a lock that may have been thrown away is not entered: `next`
-- asks by itself, and is told.
if next and not is_undone(next) and not read_holder(next) and (get('t') or not eviction(ARGV[11])) then
  local waits = read_waiter(next)
  if waits then
    waits.alive, waits.behind = now + tonumber(ARGV[7]), '-'
    write_waiter(next, waits)
  else
    join(next, ARGV[4], tonumber(ARGV[5]), tonumber(ARGV[6]) or micros, tonumber(ARGV[7]), who_is(ARGV[8], ARGV[9], ARGV[10]), '-')
  end
end
settle(next)
return finish(was_there and 1 or 0)
