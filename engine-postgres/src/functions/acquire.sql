-- Lets an acquisition in, or gives it a place in the queue, or notes that it is still waiting. May be sent any number of times: the acquisition keeps
-- what it already has.
--
-- `ticket` may be null; `alive` is for how long a waiter counts as alive; `tell` is false if messages cannot be sent.
-- Returns 'granted <token> <contended> <whether others hold it too>' | 'queued <ticket> <microseconds until the first lease may end> <last token>' | 'busy' | 'undone' | 'closed'

create function ylock.acquire(
  k bytea, i uuid, m text, p_lease bigint, stay boolean, fair boolean, p_ticket bigint, p_alive bigint, p_owner uuid, p_channel bigint, p_client text,
  tell boolean
) returns text language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  now bigint := ylock.started();
  l ylock.lock;
  before ylock.lock;
  is_there boolean := false;
  is_asserted boolean := false;
  locked record;
  r ylock.reader;
  given bigint;
  ends bigint;
begin
  -- A transaction of a caller has the lock: it would have its row, too, for longer than requests for other locks should wait.
  if not pg_try_advisory_xact_lock_shared(ylock.closing(k)) then
    return 'closed';
  end if;

  -- The quick ways: the lock is free, and nothing is to be remembered. All that this looks at is in the row. An update first, because it costs half of
  -- what an insertion does that meets a row: locks are used again as a rule.
  update ylock.lock x set token = greatest(x.token + 1, now), used = now, id = i, mode = m, lease = p_lease, expires = now + p_lease,
    granted = greatest(x.token + 1, now), since = now, revoked = false, owner = p_owner, client = p_client
    where x.key = k and x.id is null and not x.shared and not x.waiting and x.undone is null
    returning x.token into given;
  if not found then
    insert into ylock.lock as x (key, token, used, id, mode, lease, expires, granted, since, revoked, owner, client)
      values (k, now, now, i, m, p_lease, now + p_lease, now, now, false, p_owner, p_client)
      on conflict (key) do nothing
      returning x.token into given;
  end if;
  if found then
    return 'granted ' || given || ' 0';
  end if;

  select * into l from ylock.lock where key = k for update skip locked;
  if not found then
    -- While a transaction asserts the holder the acquisition keeps what it has, or takes a place, and none is let in.
    locked := ylock.locked_soon(k);
    l := locked.l;
    is_asserted := locked.is_asserted;
    if l.key is null then
      l := ylock.locked(k, now);
    end if;
  end if;
  before := l;
  now := ylock.micros();
  l := ylock.forget_undone(l, now);
  if ylock.is_undone(l, i, now) then
    return 'undone';
  end if;
  if l.waiting then
    update ylock.waiter w set alive = now + p_alive, behind = null, owner = p_owner, channel = p_channel, client = p_client
      where w.key = k and w.id = i;
    is_there := found;
  end if;
  if not is_asserted then
    l := ylock.settle(l, now, i, tell);
  end if;
  is_there := is_there or l.id = i or l.shared and exists (select from ylock.reader x where x.key = k and x.id = i);
  if is_there is not true then
    -- Not the flag in the row alone: the last waiter may have been forgotten just now.
    if not is_asserted and ylock.is_free(l, m) and (not fair or not l.waiting or not exists (select from ylock.waiter w where w.key = k)) then
      l := ylock.enter(l, now, i, m, p_lease, p_owner, p_client);
    elsif not stay then
      perform ylock.finish(before, l, now);
      return 'busy';
    else
      l := ylock.join(l, now, i, m, p_lease, p_ticket, p_alive, p_owner, p_channel, p_client, null);
      -- It may enter at once: behind readers, or before waiters that came later and have not been let in.
      if not is_asserted then
        l := ylock.settle(l, now, i, tell);
      end if;
    end if;
  end if;

  -- The client counts the lease from this question. The acquisition may have been inside for longer: since the release that it joined with, or since a
  -- question whose answer was lost. Without this the lease would end here before it ends by the client's count.
  if l.id = i then
    l.expires := now + p_lease;
    l.lease := p_lease;
    given := l.granted;
    m := l.mode;
  elsif l.shared then
    update ylock.reader x set expires = now + p_lease, lease = p_lease where x.key = k and x.id = i returning x.granted into given;
    l.longest := greatest(l.longest, p_lease);
    m := case when given is null then m else 'r' end;
  end if;
  if given is not null then
    perform ylock.finish(before, l, now);
    return 'granted ' || given || ' ' || ylock.is_contended(l, m, null, now);
  end if;
  if not stay then
    l := (ylock.leave(l, i, now)).l;
    perform ylock.finish(before, l, now);
    return 'busy';
  end if;
  select w.ticket into p_ticket from ylock.waiter w where w.key = k and w.id = i;
  ends := least(l.expires, case when l.shared then l.earliest end);
  perform ylock.finish(before, l, now);
  ends := greatest(coalesce(ends - now, 0), 0);
  if is_asserted and (ends = 0 or ylock.is_free(l, m)) then
    -- None is told when the transaction ends.
    ends := 200000;
  end if;
  return 'queued ' || p_ticket || ' ' || ends || ' ' || l.token;
end $$;
