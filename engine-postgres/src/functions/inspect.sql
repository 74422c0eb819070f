-- What there is of locks. Changes nothing.

-- Returns the sessions, and the prepared transactions, that close a lock. The name of each says where to look for it.
create function ylock.closed_by(k bytea) returns table (id uuid, since bigint, client text) language plpgsql volatile as $$
begin
  -- As a rule there is none, and the server need not look through all its locks.
  if pg_try_advisory_xact_lock_shared(ylock.closing(k)) then
    return;
  end if;
  return query select encode(substr(sha256(convert_to(l.virtualtransaction, 'UTF8')), 1, 16), 'hex')::uuid,
      (extract(epoch from coalesce(p.prepared, a.xact_start, clock_timestamp())) * 1000000)::bigint,
      case when l.pid is null then 'prepared transaction ' || coalesce(quote_literal(p.gid), '') || ' (pg_prepared_xacts)'
        else 'session of ' || coalesce(a.usename, '') || ', pid ' || l.pid || ' (pg_stat_activity)' end
    from pg_locks l
      left join pg_stat_activity a on a.pid = l.pid
      left join lateral (
        -- Its transaction is that of a lock which is its own: after a restart no process is known by it.
        select x.gid, x.prepared from pg_prepared_xacts x where l.pid is null and x.transaction in (
          select t.transactionid from pg_locks t where t.locktype = 'transactionid' and t.virtualtransaction = l.virtualtransaction and t.pid is null
        )
      ) p on true
    where l.locktype = 'advisory' and l.mode = 'ExclusiveLock' and l.granted and l.objsubid = 1
      and l.database = (select d.oid from pg_database d where d.datname = current_database())
      and (l.classid::bigint << 32 | l.objid::bigint) = ylock.closing(k);
end $$;

-- Returns the holders, in the order of their tokens, and then the waiters, in that of the queue. Without another holder also what closes the lock to leases, which has
-- no token.
create function ylock.inspect(k bytea)
returns table (kind text, id uuid, mode text, since bigint, owner uuid, client text, token bigint)
language sql volatile security definer set search_path = pg_catalog, pg_temp as $$
  with found as (
    select 'holder' as kind, l.id, l.mode, l.since, l.owner, l.client, l.granted as token, l.granted as first, 0::bigint as second
      from ylock.lock l where l.key = k and l.id is not null and l.expires > ylock.micros()
    union all
    select 'holder', r.id, 'r', r.since, r.owner, r.client, r.granted, r.granted, 0
      from ylock.reader r where r.key = k and r.expires > ylock.micros()
    union all
    select 'waiter', w.id, w.mode, w.since, w.owner, w.client, null, w.ticket, w.number
      from ylock.waiter w where w.key = k and w.alive > ylock.micros()
  ), every as (
    select * from found
    union all
    select 'holder', c.id, 'w', c.since, c.id, c.client, null, 0, 0
      from ylock.closed_by(k) c where not exists (select from found f where f.kind = 'holder')
  )
  select e.kind, e.id, e.mode, e.since, e.owner, e.client, e.token from every e order by e.kind, e.first, e.second
$$;

-- Returns the keys of at most so many rows behind this one, each with whether it is held or waited for. `upto` may be null.
create function ylock.keys(after bytea, upto bytea, most int) returns table (key bytea, used boolean)
language sql volatile security definer set search_path = pg_catalog, pg_temp as $$
  select l.key, l.id is not null or l.shared or l.waiting from ylock.lock l
    where l.key > after and (upto is null or l.key < upto) order by l.key limit most
$$;
