-- Removes what was not used for a minute: rows of locks that are free, dead waiters, and runs whose time is over. One client at a time, and only every ten seconds; at once
-- again if there were as many as may be removed in one transaction.
--
-- Returns how many locks were removed.

create function ylock.sweep(most int) returns int language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  now bigint := ylock.started();
  old bigint := now - 60 * 1000000;
  l ylock.lock;
  removed int := 0;
begin
  perform 1 from ylock.layout where swept < now - 10 * 1000000 or swept > now for update skip locked;
  if not found then
    return 0;
  end if;
  -- What is locked is in use. Conditions on the row are evaluated again on its newest version, once it is locked; the others follow below.
  for l in select * from ylock.lock x
    where x.used < old and x.token < old and (x.expires is null or x.expires < old)
      and not exists (select from ylock.reader r where r.key = x.key and r.expires > now)
      and not exists (select from ylock.waiter w where w.key = x.key and w.alive > now)
    limit most for update skip locked
  loop
    delete from ylock.waiter w where w.key = l.key and w.alive <= now;
    l := ylock.forget_undone(ylock.reap(l, now), now);
    if l.id is null and not l.shared and l.undone is null and not exists (select from ylock.waiter w where w.key = l.key) then
      delete from ylock.lock x where x.key = l.key;
      removed := removed + 1;
    end if;
  end loop;
  delete from ylock.run where kept_until < now;
  if removed < most then
    update ylock.layout set swept = now;
  end if;
  return removed;
end $$;
