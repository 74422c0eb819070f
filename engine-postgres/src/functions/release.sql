-- Gives back a grant, leaves the queue, or undoes an acquisition of which a request may still be on its way. Waiters that may enter then are let in
-- and told.
--
-- `late` is for how long such a request may be on its way, or 0. `n…` is an acquisition that joins the queue at the same time, if any.
-- Returns whether there was a grant that is not over, or a place. Null, and the grant is still there, while a transaction of a
-- caller has the lock or asserts its holder.

create function ylock.release(
  k bytea, i uuid, late bigint, n uuid, n_mode text, n_lease bigint, n_ticket bigint, n_alive bigint, n_owner uuid, n_channel bigint, n_client text,
  tell boolean
) returns boolean language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  now bigint := ylock.started();
  l ylock.lock;
  before ylock.lock;
  gone record;
  was_there boolean;
  is_asserted boolean := false;
  locked record;
begin
  -- `for update` also where the update alone would lock the row: that would go on beside a transaction which asserts this holder (`for key share`).
  select * into l from ylock.lock where key = k for update skip locked;
  if not found then
    if not pg_try_advisory_xact_lock_shared(ylock.closing(k)) then
      -- A transaction of a caller has the lock, for longer than requests for other locks should wait. What is committed is enough if nothing of this
      -- acquisition is on its way: it has no place then, and gets none.
      if late = 0 and n is null and not ylock.is_present(k, i) then
        return false;
      end if;
      return null;
    end if;
    locked := ylock.locked_soon(k);
    l := locked.l;
    is_asserted := locked.is_asserted;
    if is_asserted and (l.id = i or l.shared and exists (select from ylock.reader x where x.key = k and x.id = i)) then
      -- The holder stays. The next one takes its place in the queue nevertheless: none that comes meanwhile shall go before it.
      if n is not null then
        before := l;
        now := ylock.micros();
        l := ylock.join_next(l, now, n, n_mode, n_lease, n_ticket, n_alive, n_owner, n_channel, n_client);
        perform ylock.finish(before, l, now);
      end if;
      return null;
    end if;
  end if;
  now := ylock.micros();
  if l.id = i and not l.waiting and not l.shared and l.behind is null and late = 0 and n is null then
    -- The quick way: the only contender leaves.
    update ylock.lock set used = now, id = null, mode = null, lease = null, expires = null, granted = null, since = null, revoked = null,
      owner = null, client = null
      where key = k;
    return l.expires > now;
  end if;
  if l.key is null then
    if late = 0 and n is null then
      return false;
    end if;
    l := ylock.locked(k, now);
    -- Another one may have had the row meanwhile: a lease that was renewed since must not count as longer than it may be.
    now := ylock.micros();
  end if;

  before := l;
  l := ylock.forget_undone(l, now);
  if n is not null and l.waiting then
    -- It stands on its own from now on, and does not leave with the holder.
    update ylock.waiter w set behind = null where w.key = k and w.id = n and w.behind = i;
  end if;
  gone := ylock.leave(l, i, now);
  l := gone.l;
  was_there := gone.was_there;
  if late > 0 then
    l.undone := coalesce(l.undone, '{}') || jsonb_build_object(i::text, now + late);
  end if;
  if n is not null then
    l := ylock.join_next(l, now, n, n_mode, n_lease, n_ticket, n_alive, n_owner, n_channel, n_client);
  end if;
  if not is_asserted then
    l := ylock.settle(l, now, n, tell);
  end if;
  perform ylock.finish(before, l, now);
  return was_there;
end $$;
