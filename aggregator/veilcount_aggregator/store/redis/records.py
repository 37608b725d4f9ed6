"""Small records on one server of the store, and a copy of them on every master of a cluster.

A process that starts while the server of the records is away reads the copy, and serves the other
shards. Copies are at fixed hash tags, spread evenly over all slots: a reader needs to know nothing
of the store. A writer keeps one copy on each master; a copy that differs from the records is
replaced, also a newer one: a store that was restored from older files is the truth.

A copy is read only where the records cannot be, and decides nothing but what a running process
would decide from what it knew: what is in force may be older than the records.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache
from typing import Any

import msgspec

from ...errors import StoreError, StoreUnavailable
from ..interface import Record, Records
from .connections import Wait, Words, pairs
from .identity import RECORDS_BASE, StoreIdentity, spread_bases
from .lua_library import call, pack, raw
from .shard_client import Command, CommandExecutor, ShardClient

COPIES = 16
FIELDS = ("store", "generation", "digest", "content")


class RedisRecords:
    """The records of one store: read from their server, written through a durable writer."""

    def __init__(
        self, servers: ShardClient, writer: CommandExecutor, identity: StoreIdentity
    ) -> None:
        self._servers = servers
        self._writer = writer
        self.identity = identity

    def generation(self) -> int:
        return int(self._ask("GET", b":generation", wait=Wait.COMMIT) or 0)  # requests wait for it

    def generations(self) -> Mapping[str, int]:
        return {kind: int(number) for kind, number in self._hash(b":generations").items()}

    def kinds(self) -> frozenset[str]:
        """Return every kind that ever had a record."""
        return frozenset(kind.decode() for kind in self._ask("SMEMBERS", b":kinds"))

    def records(self, kind: str) -> Records:
        return self._hash(_key(kind))

    def record_keys(self, kind: str) -> frozenset[str]:
        return frozenset(name.decode() for name in self._ask("HKEYS", _key(kind)))

    def record_count(self, kind: str) -> int:
        return int(self._ask("HLEN", _key(kind)))

    def records_at(self, kind: str, keys: Collection[str]) -> Records:
        if not keys:
            return {}
        values = self._ask("HMGET", _key(kind), *keys)
        return {key: value for key, value in zip(keys, values, strict=True) if value is not None}

    def change_records(self, generation: int, records: Sequence[Record]) -> bool:
        packed = pack_records(records)
        command = self.identity.call("change_records", RECORDS_BASE, generation, packed)
        return bool(self._writer.execute_one(command))

    def change_record(self, record: Record, expected: bytes | None) -> bool:
        packed = pack([*_parts(record), False if expected is None else raw(expected)])
        command = self.identity.call("change_record", RECORDS_BASE, packed)
        return bool(self._writer.execute_one(command))

    def incarnation(self) -> str:
        """Return the run id and the replication id of the master that has the records.

        A process that was demoted and promoted again keeps its run id and gets a new replication
        id. It is called by key: no server answers for a slot that has moved away.
        """
        words = call("incarnation", RECORDS_BASE)
        value: bytes = self._servers.execute_one(Command(RECORDS_BASE, words))
        return value.decode()

    def replicate(self, kinds: Sequence[str]) -> bool:
        if not self._servers.address.cluster:
            return True
        generation = self.generation()
        records = {kind: self.records(kind) for kind in kinds}
        same = self.generation() == generation  # else the next time
        return same and _write_copies(self._servers, self.identity, generation, records)

    def replica(self, kind: str) -> tuple[int, Records]:
        generation, content = read_copy(self._servers)
        return generation, content.records.get(kind, {})

    def _hash(self, key: bytes) -> dict[str, bytes]:
        return {name.decode(): value for name, value in pairs(self._ask("HGETALL", key)).items()}

    def _ask(self, command: str, key: bytes, *arguments: str, wait: Wait = Wait.READ) -> Any:
        words: Words = (command, RECORDS_BASE + key, *arguments)
        return self._servers.execute_one(Command(RECORDS_BASE, words), wait)


def pack_records(records: Iterable[Record]) -> bytes:
    """Return records as an argument of the library: a value that is false removes one."""
    return pack([part for record in records for part in _parts(record)])


def _parts(record: Record) -> tuple[str, str, object]:
    kind, key, value = record
    return kind, key, False if value is None else raw(value)


def _key(kind: str) -> bytes:
    return b":records:" + kind.encode()


# -- copies ----------------------------------------------------------------------------------------


class CopyContent(msgspec.Struct, frozen=True):
    """The content of a copy: the fields of the store's identity, and records by kind and key."""

    identity: dict[bytes, bytes]
    records: dict[str, dict[str, bytes]]


@cache
def copy_bases() -> tuple[bytes, ...]:
    """Return the keys at which copies may be."""
    return spread_bases(b"copy", COPIES)


def read_copy(servers: ShardClient) -> tuple[int, CopyContent]:
    """Return the newest copy and its generation; StoreUnavailable: none can be read."""
    answers = servers.execute_each(
        [Command(base, ("HMGET", base, *FIELDS)) for base in copy_bases()], Wait.COMMIT
    )
    copies = [answer for answer in answers if not isinstance(answer, StoreError) and answer[0]]
    if not copies:
        raise StoreUnavailable("neither the records nor a copy of them can be read")
    newest: Sequence[Any] = max(copies, key=lambda answer: int(answer[1]))
    return int(newest[1]), msgspec.msgpack.decode(newest[3], type=CopyContent)


def _write_copies(
    servers: ShardClient, identity: StoreIdentity, generation: int, records: Mapping[str, Records]
) -> bool:
    """Bring each master's copy up to date, as far as masters answer; return whether all did."""
    content = CopyContent(
        identity.fields(), {kind: dict(answers) for kind, answers in records.items()}
    )
    encoded = msgspec.msgpack.encode(content)
    digest = hashlib.sha256(encoded).hexdigest().encode()
    answers = servers.execute_each(
        [Command(base, ("HMGET", base, *FIELDS[:3])) for base in copy_bases()], Wait.PROBE
    )
    targets = _one_per_master(servers)
    marks = [identity.store, b"%d" % generation, digest]
    commands = []
    for base, answer in zip(copy_bases(), answers, strict=True):
        if isinstance(answer, StoreError):
            continue
        if base not in targets:
            commands += [Command(base, ("DEL", base))] if answer[0] else []
        elif answer != marks:
            same = answer[0] == identity.store and answer[2] == digest
            arguments = [*marks, *([] if same else [encoded])]
            parts = [part for pair in zip(FIELDS, arguments, strict=False) for part in pair]
            commands.append(Command(base, ("HSET", base, *parts)))
    answers += servers.execute_each(commands, Wait.COMMIT)
    return not any(isinstance(answer, StoreError) for answer in answers)


def _one_per_master(servers: ShardClient) -> set[bytes]:
    owned: dict[object, bytes] = {}
    for base in copy_bases():
        try:
            owned.setdefault(servers.owner(base).host, base)
        except StoreUnavailable:
            continue
    return set(owned.values())
