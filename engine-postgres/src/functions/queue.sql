-- The waiters and their queue.

-- After the clock was set back: no waiter may count as alive for longer, and no ticket be larger, than if it had been written now. Otherwise dead waiters
-- would keep their places until the clock shows that time again, and waiters that come meanwhile would go before those that were there already.
create function ylock.follow_clock(k bytea, now bigint) returns void language plpgsql volatile as $$
begin
  update ylock.waiter w set ticket = least(w.ticket, now), number = o.number,
    alive = case when w.behind is null then least(w.alive, now + w.lease) else w.alive end
    from (select id, row_number() over (order by ticket, number) as number from ylock.waiter where key = k) o
    where w.key = k and w.id = o.id;
end $$;

-- Gives an acquisition a place in the queue, behind all tickets that are not larger than its own.
create function ylock.join(
  inout l ylock.lock, now bigint, i uuid, m text, lease bigint, ticket bigint, alive bigint, owner uuid, channel bigint, client text, behind uuid
) language plpgsql volatile as $$
declare
  last ylock.waiter;
begin
  select * into last from ylock.waiter w where w.key = l.key order by w.ticket desc, w.number desc limit 1;
  if last.alive <= now then
    -- Forgets dead waiters at the end: these are passed over only when their turn comes, and would stay for as long as a waiter before them waits. All at
    -- once: of rows that were deleted one by one each later look would find the entries in the index.
    select * into last from ylock.waiter w where w.key = l.key and w.alive > now order by w.ticket desc, w.number desc limit 1;
    delete from ylock.waiter w where w.key = l.key and (last.id is null or (w.ticket, w.number) > (last.ticket, last.number));
  end if;
  if last.ticket > now then
    perform ylock.follow_clock(l.key, now);
    l.number := (select max(w.number) from ylock.waiter w where w.key = l.key);
  end if;
  l.number := l.number + 1;
  -- A client's guess of the server's time may be wrong, but must not be ahead of it.
  insert into ylock.waiter (key, id, mode, lease, alive, since, ticket, number, behind, owner, client, channel)
    values (l.key, i, m, lease, now + alive, now, least(coalesce(ticket, now), now), l.number, behind, owner, client, channel);
  l.waiting := true;
end $$;

-- The waiter is there on its own from now on.
create function ylock.stand_alone(k bytea, i uuid, until bigint) returns boolean language plpgsql volatile as $$
begin
  update ylock.waiter w set alive = until, behind = null where w.key = k and w.id = i;
  return found;
end $$;

-- An acquisition that a release takes along joins, or stays where it stands, on its own from now on.
create function ylock.join_next(
  inout l ylock.lock, now bigint, n uuid, n_mode text, n_lease bigint, n_ticket bigint, n_alive bigint, n_owner uuid, n_channel bigint, n_client text
) language plpgsql volatile as $$
begin
  -- A copy of this request may arrive after the next one was given back, or gave up.
  if ylock.is_undone(l, n, now) or l.id is not distinct from n or exists (select from ylock.reader x where x.key = l.key and x.id = n) then
    return;
  end if;
  if not ylock.stand_alone(l.key, n, now + n_alive) then
    l := ylock.join(l, now, n, n_mode, n_lease, n_ticket, n_alive, n_owner, n_channel, n_client, null);
  end if;
end $$;
