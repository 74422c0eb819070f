-- The tables. All times are the server's, in microseconds since 1970; leases are in microseconds too.
--
-- Invariants. A lock has one row, which every function locks before it looks at anything else of the lock. Holders are one writer, in the row
-- itself, or readers only, the first of them in the row. Each grant takes a token larger than all before. A waiter has one place; the queue is
-- in the order of tickets and, where these are equal, of numbers.

create table ylock.lock (
  -- Group and name, with a byte between them that is in no UTF-8.
  key bytea primary key,
  -- The last token.
  token bigint not null,
  -- When the row was written last, but for renewals. It stays for a minute after that, so that the last token is remembered.
  used bigint not null,
  -- Whether there are rows of this lock in `waiter` and in `reader`. May be true for no longer than until the next function looks; never false while there
  -- are: the quick ways rely on it.
  waiting boolean not null default false,
  shared boolean not null default false,
  -- No lease of a reader in `reader` ends before this, and none is longer than that.
  earliest bigint not null default 0,
  longest bigint not null default 0,
  -- The last number that a waiter got.
  number bigint not null default 0,
  -- The acquisitions that were undone, each with the time until which a request of it that arrives changes nothing. Here, and in no other table,
  -- because the quick way in must see what was committed before it had the row.
  undone jsonb,
  -- The holder; all null if there is none. `behind` is the waiter of the same client that stands behind it.
  id uuid, mode text, lease bigint, expires bigint, granted bigint, since bigint, revoked boolean, owner uuid, client text, behind uuid
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 200);

create table ylock.reader (
  key bytea, id uuid, lease bigint not null, expires bigint not null, granted bigint not null, since bigint not null, revoked boolean not null,
  owner uuid not null, client text not null, behind uuid,
  primary key (key, id)
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 200);

create table ylock.waiter (
  key bytea, id uuid, mode text not null, lease bigint not null,
  -- Until when it counts as alive.
  alive bigint not null, since bigint not null, ticket bigint not null, number bigint not null,
  -- The holder of the same client that it stands behind, if it does not ask by itself.
  behind uuid,
  owner uuid not null, client text not null,
  -- The number of the connection that hears for it; null if it asks by itself.
  channel bigint,
  primary key (key, id)
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 200);
create index waiter_order on ylock.waiter (key, ticket, number);

-- The last run of each job.
create table ylock.run (key bytea primary key, run text not null, kept_until bigint not null) with (fillfactor = 50);

-- What a statement of a caller has locked; see `must_outlast_statement`. A row is there only while the function runs that makes it. Unlogged: a publication of
-- all tables would refuse to delete rows without a key.
create unlogged table ylock.locking (statement timestamptz not null, lock text not null);

-- Which version of all this there is, and when locks that are not used any more were swept.
create table ylock.layout (version int not null, swept bigint not null default 0);
