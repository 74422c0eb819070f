-- The holders, and the turns of the waiters.

create function ylock.is_free(l ylock.lock, m text) returns boolean language sql immutable as $$
  select case when m = 'r' then l.id is null or l.mode = 'r' else l.id is null and not l.shared end
$$;

-- Returns 1 if a waiter other than `own` that is alive conflicts with this mode, otherwise 0. A dead one must not keep the readers of a client out that
-- only renews: no other request may come that would forget it.
create function ylock.is_contended(l ylock.lock, m text, own uuid, now bigint) returns int language plpgsql volatile as $$
begin
  if not l.waiting then
    return 0;
  end if;
  return exists (
    select from ylock.waiter w where w.key = l.key and w.alive > now and w.id is distinct from own and (m = 'w' or w.mode = 'w')
  )::int;
end $$;

-- The waiter that stands behind a holder leaves with that holder, unless by now it asks by itself.
create function ylock.remove_stander(k bytea, holder uuid, stander uuid) returns void language plpgsql volatile as $$
begin
  if stander is not null then
    delete from ylock.waiter w where w.key = k and w.id = stander and w.behind = holder;
  end if;
end $$;

-- Removes the holder in the row.
create function ylock.remove_holder(inout l ylock.lock) language plpgsql volatile as $$
begin
  perform ylock.remove_stander(l.key, l.id, l.behind);
  l.id := null; l.mode := null; l.lease := null; l.expires := null; l.granted := null; l.since := null; l.revoked := null;
  l.owner := null; l.client := null; l.behind := null;
end $$;

-- Removes the readers whose leases end before this.
create function ylock.remove_readers(inout l ylock.lock, ended bigint) language plpgsql volatile as $$
declare
  r ylock.reader;
begin
  for r in delete from ylock.reader x where x.key = l.key and x.expires <= ended returning x.* loop
    perform ylock.remove_stander(l.key, r.id, r.behind);
  end loop;
  select coalesce(min(x.expires), 0), count(*) > 0 into l.earliest, l.shared from ylock.reader x where x.key = l.key;
end $$;

-- Ends the leases that are over. A clock that was set back must not prolong a lease.
create function ylock.reap(inout l ylock.lock, now bigint) language plpgsql volatile as $$
begin
  if l.id is not null then
    if l.expires <= now then
      l := ylock.remove_holder(l);
    elsif l.expires > now + l.lease then
      l.expires := now + l.lease;
    end if;
  end if;
  if l.shared and (l.earliest <= now or l.earliest > now + l.longest) then
    update ylock.reader x set expires = now + x.lease where x.key = l.key and x.expires > now + x.lease;
    l := ylock.remove_readers(l, now);
  end if;
end $$;

-- Makes an acquisition a holder. Its token is the server's time where that is larger than the last token: so tokens go on growing also after a loss of
-- all data.
create function ylock.enter(inout l ylock.lock, now bigint, i uuid, m text, lease bigint, owner uuid, client text) language plpgsql volatile as $$
begin
  if not ylock.is_free(l, m) then
    raise exception 'ylock: % would enter beside a holder', i;
  end if;
  l.token := greatest(l.token + 1, now);
  if l.id is null then
    l.id := i; l.mode := m; l.lease := lease; l.expires := now + lease; l.granted := l.token; l.since := now; l.revoked := false;
    l.owner := owner; l.client := client; l.behind := null;
  else
    insert into ylock.reader (key, id, lease, expires, granted, since, revoked, owner, client)
      values (l.key, i, lease, now + lease, l.token, now, false, owner, client);
    l.earliest := case when l.shared then least(l.earliest, now + lease) else now + lease end;
    l.longest := case when l.shared then greatest(l.longest, lease) else lease end;
    l.shared := true;
  end if;
end $$;

-- Returns what is to be done about a waiter that may enter: 'told'; or 'deaf' if a message would not be heard; or 'asks' for a waiter that asks by
-- itself: its turn lasts until its next question.
create function ylock.hears(channel bigint, tell boolean) returns text language plpgsql volatile as $$
begin
  if channel is null or not tell then
    return 'asks';
  end if;
  -- The connection that listens has this lock for itself. Shared, so that two functions that look at once both find that it has gone.
  return case when pg_try_advisory_xact_lock_shared(channel) then 'deaf' else 'told' end;
end $$;

-- Lets in every waiter that may enter: the first in the queue, and readers behind a reader. `own` is asking, and needs no message. A waiter whose client
-- would not hear the message keeps its place, and the next one goes first: the client died, or lost its connection.
create function ylock.settle(inout l ylock.lock, now bigint, own uuid, tell boolean) language plpgsql volatile as $$
declare
  w ylock.waiter;
  heard text;
  was_set_back boolean := false;
begin
  l := ylock.reap(l, now);
  if not l.waiting then
    return;
  end if;
  for w in select * from ylock.waiter x where x.key = l.key order by x.ticket, x.number loop
    if w.alive <= now then
      delete from ylock.waiter x where x.key = l.key and x.id = w.id;
      continue;
    end if;
    was_set_back := was_set_back or (w.behind is null and w.alive > now + w.lease);
    exit when not ylock.is_free(l, w.mode);
    continue when w.behind is not null;
    heard := case when w.id = own then 'own' else ylock.hears(w.channel, tell) end;
    exit when heard = 'asks';
    continue when heard = 'deaf';
    if heard = 'told' then
      -- Sent when this transaction commits, and not before.
      perform pg_notify('ylock_' || to_hex(w.channel),
        w.id || ' ' || greatest(l.token + 1, now) || ' ' || ylock.is_contended(l, w.mode, w.id, now) || ' ' || encode(l.key, 'hex'));
    end if;
    delete from ylock.waiter x where x.key = l.key and x.id = w.id;
    l := ylock.enter(l, now, w.id, w.mode, w.lease, w.owner, w.client);
  end loop;
  if was_set_back then
    perform ylock.follow_clock(l.key, now);
  end if;
end $$;

-- Removes what an acquisition has in the store. `was_there`: whether there was a grant that is not over, or a place.
create function ylock.leave(inout l ylock.lock, i uuid, now bigint, out was_there boolean) language plpgsql volatile as $$
declare
  r ylock.reader;
begin
  was_there := false;
  if l.id = i then
    was_there := l.expires > now;
    l := ylock.remove_holder(l);
  elsif l.shared then
    delete from ylock.reader x where x.key = l.key and x.id = i returning x.* into r;
    if found then
      was_there := r.expires > now;
      perform ylock.remove_stander(l.key, r.id, r.behind);
      l.shared := exists (select from ylock.reader x where x.key = l.key);
    end if;
  end if;
  if l.waiting then
    delete from ylock.waiter x where x.key = l.key and x.id = i;
    was_there := was_there or found;
  end if;
end $$;

-- Returns whether an acquisition has something in the store, by what is committed.
create function ylock.is_present(k bytea, i uuid) returns boolean language sql stable as $$
  select exists (select from ylock.lock x where x.key = k and x.id = i)
    or exists (select from ylock.reader x where x.key = k and x.id = i)
    or exists (select from ylock.waiter x where x.key = k and x.id = i)
$$;
