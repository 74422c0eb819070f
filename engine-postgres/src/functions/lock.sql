-- What all functions share.

create function ylock.micros() returns bigint language sql volatile as $$
  select (extract(epoch from clock_timestamp()) * 1000000)::bigint
$$;

-- Refuses a transaction of another isolation.
create function ylock.must_be_read_committed() returns void language plpgsql volatile as $$
begin
  -- With a snapshot for the whole transaction a function would not see what was committed while it waited for the row.
  if current_setting('transaction_isolation') not in ('read committed', 'read uncommitted') then
    raise exception 'locks need transactions that are READ COMMITTED, and this one is %', upper(current_setting('transaction_isolation'))
      using errcode = 'YL001', hint = 'alter role … set default_transaction_isolation = ''read committed''';
  end if;
end $$;

-- Returns the time, and makes the transaction one in which the rest is right.
create function ylock.started() returns bigint language plpgsql volatile as $$
begin
  if current_setting('transaction_isolation') <> 'read committed' then
    perform ylock.must_be_read_committed();
  end if;
  if current_setting('synchronous_commit') in ('off', 'local') then
    perform set_config('synchronous_commit', 'on', true);
  end if;
  -- A row is locked for longer only while a transaction of a caller has the lock: requests for other locks stand behind this one.
  if current_setting('lock_timeout') <> '500ms' then
    perform set_config('lock_timeout', '500ms', true);
  end if;
  -- The client must hear that the server has given up waiting for a standby.
  if current_setting('client_min_messages') = 'error' then
    perform set_config('client_min_messages', 'warning', true);
  end if;
  return ylock.micros();
end $$;

-- Returns the key of a lock. Refuses names that clients refuse: no listing could show such a lock.
create function ylock.key_of("group" text, name text) returns bytea language plpgsql immutable as $$
begin
  if "group" is null or name is null or octet_length(convert_to("group", 'UTF8')) not between 1 and 256
    or octet_length(convert_to(name, 'UTF8')) not between 1 and 1024
  then
    raise exception 'a lock has a group of 1 to 256 bytes and a name of 1 to 1024 bytes, in UTF-8' using errcode = 'invalid_parameter_value';
  end if;
  return convert_to("group", 'UTF8') || '\xff'::bytea || convert_to(name, 'UTF8');
end $$;

-- Returns the number of the advisory lock, one for each namespace, by which a lock is closed while a transaction of a caller has it. It saves waiting for the row, and decides nothing.
create function ylock.closing(k bytea) returns bigint language sql immutable as $$
  select hashtextextended('ylock.' || encode(k, 'hex'), 9127)
$$;

-- Returns the lock with its row locked, made if there was none.
create function ylock.locked(k bytea, now bigint) returns ylock.lock language plpgsql volatile as $$
declare l ylock.lock;
begin
  loop
    select * into l from ylock.lock where key = k for update;
    exit when found;
    insert into ylock.lock (key, token, used) values (k, 0, now) on conflict do nothing;
  end loop;
  return l;
end $$;

-- Locks the row, if there is one, where it could not be locked without waiting. Waits for other functions, which are quick, and not for a transaction of a
-- caller that asserts the holder (`for key share`), which may last for long: requests for other locks stand behind this one, and renewals of this lock would
-- stand behind a request that waits for such a transaction. While it lasts the row is locked as for a change that ends no holder and lets none in, and
-- `is_asserted` is true.
create function ylock.locked_soon(k bytea, out l ylock.lock, out is_asserted boolean) language plpgsql volatile as $$
begin
  is_asserted := false;
  select * into l from ylock.lock where key = k for no key update;
  if found then
    select * into l from ylock.lock where key = k for update skip locked;
    if not found then
      is_asserted := true;
      select * into l from ylock.lock where key = k for no key update;
    end if;
  end if;
end $$;

-- Writes what has changed. Every function that has changed a lock ends with this.
create function ylock.finish(before ylock.lock, l ylock.lock, now bigint) returns void language plpgsql volatile as $$
begin
  if l.waiting then
    l.waiting := exists (select from ylock.waiter where key = l.key);
  end if;
  if l is not distinct from before then
    return;
  end if;
  update ylock.lock set token = l.token, used = now, waiting = l.waiting, shared = l.shared, earliest = l.earliest, longest = l.longest,
    number = l.number, undone = l.undone, id = l.id, mode = l.mode, lease = l.lease, expires = l.expires, granted = l.granted, since = l.since,
    revoked = l.revoked, owner = l.owner, client = l.client, behind = l.behind
    where key = l.key;
end $$;

-- Returns whether an acquisition counts as undone: a request of it that comes too late changes nothing.
create function ylock.is_undone(l ylock.lock, i uuid, now bigint) returns boolean language sql immutable as $$
  select l.undone is not null and coalesce((l.undone ->> i::text)::bigint > now, false)
$$;

-- Forgets the acquisitions that were undone long ago.
create function ylock.forget_undone(inout l ylock.lock, now bigint) language plpgsql immutable as $$
begin
  if l.undone is not null then
    l.undone := (select jsonb_object_agg(one.key, one.value) from jsonb_each_text(l.undone) one where one.value::bigint > now);
  end if;
end $$;
