-- The last runs of jobs.

create function ylock.last_run(k bytea) returns text
language sql volatile security definer set search_path = pg_catalog, pg_temp as $$
  select run from ylock.run where key = k
$$;

-- Stores the last run of a job, unless a later one is there: also a copy of this call that arrives late changes nothing then. `ordered` is how many letters
-- at its beginning are in the order of the runs. Returns whether it is stored.
create function ylock.store_run(k bytea, p_run text, ordered int, kept bigint) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  now bigint := ylock.started();
begin
  insert into ylock.run as r (key, run, kept_until) values (k, p_run, now + kept)
    on conflict (key) do update set run = excluded.run, kept_until = excluded.kept_until
    where left(excluded.run, ordered) >= left(r.run, ordered) collate "C";
  return found;
end $$;
