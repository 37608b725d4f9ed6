-- The tables of a state's file, version 3.

create table person (
    key blob primary key, salt blob not null, consented integer, declined text not null
) strict, without rowid;

create table coverage ( -- outlives its person: what counts from a consent counts from the first
    person blob, series blob, since real not null, resumed real not null,
    is_current integer not null, round integer not null, primary key (person, series)
) strict, without rowid;

create table used (
    person blob, series blob, period integer not null, answers integer not null,
    primary key (person, series)
) strict, without rowid;

create table ledger (
    person blob, lineage text, life integer not null, first_day integer not null,
    end_day integer not null, range_spent integer not null, primary key (person, lineage)
) strict, without rowid;

create table held (
    person blob, series blob, period integer not null, segment integer not null,
    value text not null, at real not null, due real not null, primary key (person, series)
) strict, without rowid;
create index held_due on held (due);

create table token (
    person blob, pseudonym blob, token blob not null, primary key (person, pseudonym)
) strict, without rowid;

create table report (
    number integer primary key autoincrement, -- a wiped one's must not settle another's
    person blob not null, series blob not null,
    period integer not null, segment integer not null, pseudonym blob not null,
    slot integer not null, message blob not null, sealed blob not null,
    earliest real not null, send_at real not null,
    expires real not null, is_true integer not null, leased real not null default 0,
    tries integer not null default 0, status text not null default 'waiting'
) strict;
create index report_due on report (send_at) where status = 'waiting';
create index report_ready on report (max(send_at, leased)) where status = 'waiting';
create index report_late on report (expires) where status = 'waiting';
create index report_person on report (person, number);

create table loss (
    reason text, collection text, count integer not null, primary key (reason, collection)
) strict, without rowid;

create table note (name text primary key, value text not null) strict, without rowid;
