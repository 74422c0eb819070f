-- What there is of locks. Changes nothing.

-- Returns the holders, in the order of their tokens, and then the waiters, in that of the queue.
create function ylock.inspect(k bytea)
returns table (kind text, id uuid, mode text, since bigint, owner uuid, client text, token bigint)
language sql volatile security definer set search_path = pg_catalog, pg_temp as $$
  select found.kind, found.id, found.mode, found.since, found.owner, found.client, found.token from (
    select 'holder' as kind, l.id, l.mode, l.since, l.owner, l.client, l.granted as token, l.granted as first, 0::bigint as second
      from ylock.lock l where l.key = k and l.id is not null and l.expires > ylock.micros()
    union all
    select 'holder', r.id, 'r', r.since, r.owner, r.client, r.granted, r.granted, 0
      from ylock.reader r where r.key = k and r.expires > ylock.micros()
    union all
    select 'waiter', w.id, w.mode, w.since, w.owner, w.client, null, w.ticket, w.number
      from ylock.waiter w where w.key = k and w.alive > ylock.micros()
  ) found order by found.kind, found.first, found.second
$$;

-- Returns the keys of at most so many rows behind this one, each with whether it is held or waited for. `upto` may be null.
create function ylock.keys(after bytea, upto bytea, most int) returns table (key bytea, used boolean)
language sql volatile security definer set search_path = pg_catalog, pg_temp as $$
  select l.key, l.id is not null or l.shared or l.waiting from ylock.lock l
    where l.key > after and (upto is null or l.key < upto) order by l.key limit most
$$;
