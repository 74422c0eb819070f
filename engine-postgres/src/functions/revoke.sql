-- Marks a grant as revoked, so that its holder's next renewal finds out. Returns whether this acquisition held the lock.

create function ylock.revoke(k bytea, i uuid) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  now bigint := ylock.started();
begin
  -- Beside a transaction that asserts the holder: this ends none, and lets none in.
  perform 1 from ylock.lock where key = k for no key update;
  now := ylock.micros();
  update ylock.lock set revoked = true where key = k and id = i and expires > now;
  if not found then
    update ylock.reader set revoked = true where key = k and id = i and expires > now;
  end if;
  return found;
end $$;
