-- Lets an acquisition in, or gives it a place in the queue, or notes that it is still waiting. May be sent any number of times: the
-- acquisition keeps what it already has.
--
-- In: id, mode, lease, patience (queue or try), fairness (fair or unfair), ticket (or -), for how long a waiter counts as alive, owner,
-- channel, client, and `accepts` if the client accepts that the server throws away locks.
-- Out: {'granted', token, contended} | {'queued', ticket, milliseconds until the first lease may end, last token} |
-- {'busy'} | {'undone'} | {'evicts', policy}

local id, mode, lease, patience, fairness = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4], ARGV[5]
local ticket, alive, who = tonumber(ARGV[6]) or micros, tonumber(ARGV[7]), who_is(ARGV[8], ARGV[9], ARGV[10])

load({ 'x:' .. id, 'a:' .. id, 'h:' .. id, 'w', 'hn', 'm', 'l', 'f', 'z', 'j', 'k', 'kw', 't', 'e', 'xf', 'xn' })
if is_undone(id) then return { 'undone' } end
-- A lock of which the last token is not known was not used for long, or was thrown away while a holder may still rely on it. A lock that is
-- there was not thrown away: its holders are all that there are.
local policy = not get('t') and eviction(ARGV[11])
if policy then return { 'evicts', policy } end
forget_undone()
local waits = read_waiter(id)
if waits then
  waits.alive, waits.behind = now + alive, '-'
  write_waiter(id, waits)
  set('o:' .. id, who)
  outlive(lease)
end
settle(id)
if not waits and not read_holder(id) then
  if is_free(mode) and (num('k') == 0 or fairness == 'unfair') then
    set('o:' .. id, who)
    enter(id, mode, lease)
  elseif patience == 'try' then
    return finish({ 'busy' })
  else
    join(id, mode, lease, ticket, alive, who, '-')
    -- It may enter at once: behind readers, or before waiters that came later and have not been let in.
    settle(id)
  end
end
local held = read_holder(id)
if held then
  -- The client counts the lease from this question. The acquisition may have been inside for longer: since the release that it joined
  -- with, or since a question whose answer was lost. Without this the lease would end on the server before it ends by the client's
  -- count, and the next waiter be let in beside this holder.
  prolong(id, held, lease)
  return finish({ 'granted', held.token, is_contended(held.mode) })
end
if patience == 'try' then
  leave(id)
  return finish({ 'busy' })
end
return finish({ 'queued', whole(read_waiter(id).ticket), whole(math.max(num('m') - now, 0)), get('t') or '0' })
