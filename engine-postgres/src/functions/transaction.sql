-- For transactions of the caller: a lock that is held until their end, and checks of what the caller holds otherwise.

-- Fails if the transaction ends with the statement that has locked something.
create function ylock.has_outlasted_statement() returns trigger language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
  if statement_timestamp() = new.statement then
    raise exception 'the lock % would end with the statement that locks it, which is not in a transaction block', new.lock
      using errcode = 'no_active_sql_transaction', hint = 'begin a transaction before: BEGIN';
  end if;
  return null;
end $$;

create constraint trigger has_outlasted_statement after insert on ylock.locking deferrable initially deferred
  for each row execute function ylock.has_outlasted_statement();

-- Sees to it that the caller is told if what it has locked ends with its own statement: outside of a transaction block each statement is a transaction. A function
-- cannot see whether there is a block. So it is found out at the end of the transaction, which in a block is another statement. Only where the text shows
-- one statement that calls these functions itself: the other statements of one message, and the rest of a function of the program, go on under the lock.
create function ylock.must_outlast_statement("group" text, name text) returns void language plpgsql volatile as $$
declare
  asked text := current_query();
  made tid;
begin
  if asked ~ '^[^;]*;?\s*$' and (asked ~* '(lock_in|assert_holder)' or asked ~* '^\s*execute\s') then
    -- The caller may have constraints checked at once.
    set constraints ylock.has_outlasted_statement deferred;
    insert into ylock.locking values (statement_timestamp(), "group" || '/' || name) returning ctid into made;
    delete from ylock.locking where ctid = made;
  end if;
end $$;

-- Locks a lock until the end of the transaction. Returns false if it is held or waited for, and waits for the end of other transactions that have it.
create function ylock.try_lock_in("group" text, name text) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  k bytea := ylock.key_of("group", name);
begin
  perform ylock.must_be_read_committed();
  -- One that tries again and again while a lease holds the lock must not close it to those that ask for a place in the queue.
  if exists (select from ylock.lock x where x.key = k and x.id is not null and x.expires > ylock.micros())
    or exists (select from ylock.reader x where x.key = k and x.expires > ylock.micros())
    or exists (select from ylock.waiter x where x.key = k and x.alive > ylock.micros())
  then
    return false;
  end if;
  -- What is locked in this block is unlocked when it fails: the renewals of a valid holder must not wait for the end of this transaction.
  begin
    perform pg_advisory_xact_lock(ylock.closing(k));
    if not ylock.take(k) then
      raise exception using errcode = 'YL002', message = 'taken back';
    end if;
  exception when sqlstate 'YL002' then
    return false;
  end;
  perform ylock.must_outlast_statement("group", name);
  return true;
end $$;

-- Does the same, and fails with 55P03 if the lock is held or waited for.
create function ylock.lock_in("group" text, name text) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  if not ylock.try_lock_in("group", name) then
    raise exception 'the lock %/% is held or waited for', "group", name using errcode = 'lock_not_available';
  end if;
end $$;

-- Locks the row, and returns whether no lease holds the lock or waits for it.
create function ylock.take(k bytea) returns boolean language plpgsql volatile as $$
declare
  locked record := ylock.locked_soon(k);
  l ylock.lock := locked.l;
  before ylock.lock;
  now bigint := ylock.micros();
begin
  -- Nor for a transaction that asserts a holder: the lock is closed meanwhile to those that ask for a place in the queue.
  if locked.is_asserted then
    return false;
  end if;
  if l.key is null then
    l := ylock.locked(k, now);
    now := ylock.micros();
  end if;
  before := l;
  l := ylock.reap(l, now);
  if l.id is not null or l.shared then
    return false;
  end if;
  if l.waiting then
    delete from ylock.waiter w where w.key = k and w.alive <= now;
    if exists (select from ylock.waiter w where w.key = k) then
      return false;
    end if;
  end if;
  perform ylock.finish(before, l, now);
  return true;
end $$;

-- Fails with YL003 unless this token's holder is valid; until the end of the transaction no other holder is let in. `token` is that of the lease, as the program has
-- it: its last ten bits count hand-overs inside the holder's process, of which the store knows nothing.
create function ylock.assert_holder("group" text, name text, token bigint) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  k bytea := ylock.key_of("group", name);
  l ylock.lock;
  is_valid boolean;
begin
  perform ylock.must_be_read_committed();
  -- Renewals go on: they lock the row as for a change of what is no key.
  select * into l from ylock.lock where key = k for key share;
  is_valid := coalesce(l.id is not null and l.granted = token >> 10 and l.expires > ylock.micros() and not l.revoked, false);
  if not is_valid and l.shared then
    is_valid := exists (
      select from ylock.reader r where r.key = k and r.granted = token >> 10 and r.expires > ylock.micros() and not r.revoked
    );
  end if;
  if not is_valid then
    raise exception 'token % is not that of a holder of %/%', token, "group", name using errcode = 'YL003';
  end if;
  perform ylock.must_outlast_statement("group", name);
end $$;

-- Returns the new token if it is not smaller than the old one, which may be null, and fails with YL004 otherwise: for a column that keeps the last token.
create function ylock.fence(old bigint, new bigint) returns bigint language plpgsql immutable as $$
begin
  if new is null or new < old then
    raise exception 'token % is older than %', new, old using errcode = 'YL004';
  end if;
  return new;
end $$;
