-- Renews a grant, and stores what its holder wants to be shown: its mode, and the waiter of the same client that stands behind it.
--
-- `b…` is the waiter behind it, if any.
-- Returns 'renewed <contended>' | 'asserted' if it was renewed and does not become a reader yet, because a transaction asserts it | 'gone' | 'revoked'

create function ylock.renew(
  k bytea, i uuid, m text, p_lease bigint, b uuid, b_mode text, b_lease bigint, b_ticket bigint, b_owner uuid, b_channel bigint, b_client text,
  tell boolean
) returns text language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  now bigint := ylock.started();
  l ylock.lock;
  before ylock.lock;
  r ylock.reader;
  w ylock.waiter;
  is_first boolean;
  stander uuid;
  is_asserted boolean := false;
begin
  -- A renewal lets no contender in, unless a writer becomes a reader: so it goes on beside a transaction that asserts the holder.
  select * into l from ylock.lock where key = k for no key update;
  if l.id = i and l.mode = 'w' and m = 'r' then
    perform 1 from ylock.lock where key = k for update skip locked;
    if not found then
      -- It stays a writer for as long as the transaction lasts, and is renewed as one.
      m := 'w';
      is_asserted := true;
    end if;
  end if;
  now := ylock.micros();
  is_first := coalesce(l.id = i, false);
  if is_first then
    r := row(k, l.id, l.lease, l.expires, l.granted, l.since, l.revoked, l.owner, l.client, l.behind);
  elsif l.shared then
    select * into r from ylock.reader x where x.key = k and x.id = i;
  end if;
  if r.id is null or r.expires <= now then
    return 'gone';
  end if;
  -- A revoked grant stays until its holder has heard of it and releases it: before that no waiter that conflicts may get in.
  if r.revoked then
    return 'revoked';
  end if;
  if l.waiting and exists (select from ylock.waiter x where x.key = k and x.behind is null and x.alive > now + x.lease) then
    perform ylock.follow_clock(k, now);
  end if;
  if is_first and b is null and l.behind is null and l.undone is null and l.mode = m then
    update ylock.lock set expires = now + p_lease, lease = p_lease where key = k;
    return case when is_asserted then 'asserted' else 'renewed ' || ylock.is_contended(l, m, null, now) end;
  end if;

  before := l;
  l := ylock.forget_undone(l, now);
  stander := r.behind;
  if stander is distinct from b then
    perform ylock.remove_stander(k, i, stander);
    stander := null;
  end if;
  if b is not null and not ylock.is_undone(l, b, now) then
    select * into w from ylock.waiter x where x.key = k and x.id = b;
    if found and w.behind = i then
      update ylock.waiter x set alive = now + p_lease where x.key = k and x.id = b;
    elsif not found and l.id is distinct from b and not exists (select from ylock.reader x where x.key = k and x.id = b) then
      -- With the lease that the waiter asked for: its client counts on that one, once the waiter is let in.
      l := ylock.join(l, now, b, b_mode, b_lease, b_ticket, p_lease, b_owner, b_channel, b_client, i);
      stander := b;
    end if;
  end if;
  if is_first then
    l.expires := now + p_lease;
    l.lease := p_lease;
    l.behind := stander;
    -- Never from reader to writer: a copy of an earlier renewal may come when other readers are inside.
    if l.mode = 'w' and m = 'r' then
      l.mode := 'r';
      l := ylock.settle(l, now, null, tell);
    end if;
  else
    update ylock.reader x set expires = now + p_lease, lease = p_lease, behind = stander where x.key = k and x.id = i;
    l.longest := greatest(l.longest, p_lease);
  end if;
  perform ylock.finish(before, l, now);
  if is_asserted then
    return 'asserted';
  end if;
  return 'renewed ' || ylock.is_contended(l, case when is_first then l.mode else 'r' end, b, now);
end $$;

-- Renews many grants with nothing behind them, in one transaction. A lock that is locked by another transaction at this moment is left out, so that no two of these
-- wait for each other.
--
-- Returns the answers of `renew`, in the same order, and 'locked' for those that were left out.
create function ylock.renew_many(k bytea[], i uuid[], m text[], p_lease bigint[]) returns text[]
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  answers text[] := array_fill(null::text, array[coalesce(array_length(k, 1), 0)]);
begin
  for n in 1 .. coalesce(array_length(k, 1), 0) loop
    -- Nor is one in which a writer becomes a reader: waiters that it lets in are told.
    perform 1 from ylock.lock where key = k[n] and (id = i[n] and mode = 'w' and m[n] = 'r') is not true for no key update skip locked;
    if found then
      answers[n] := ylock.renew(k[n], i[n], m[n], p_lease[n], null, null, null, null, null, null, null, false);
    else
      -- Or there is no such lock: the question that is asked alone tells.
      answers[n] := 'locked';
    end if;
  end loop;
  return answers;
end $$;
