"""A copy of the root, and of the records that the intake needs, on every master of a cluster.

A process that starts while the server of the records is away reads the copy, and serves the other
shards. Copies are at fixed hash tags, spread evenly over all slots: a reader needs to know nothing
of the store. A writer keeps one copy on each master; whatever does not hold what the records hold
now is written anew, also what is newer: a store that came back from older files is the truth.

It is read only where the records cannot be, and nothing is ever decided from it but what a running
process would decide from what it knew: what is in force may be older than the records.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import msgspec

from ...errors import StoreError, StoreUnavailable
from ..interface import Records
from .connections import Wait
from .identity import StoreIdentity, spread_bases
from .shard_client import Command, ShardClient

COPIES = 16
FIELDS = ("store", "generation", "digest", "content")


class CopyContent(msgspec.Struct, frozen=True):
    """What a copy holds: the root's fields, and records by kind and key."""

    root: dict[bytes, bytes]
    records: dict[str, dict[str, bytes]]


@dataclass(frozen=True, slots=True)
class RecordCopy:
    """One copy as it was found."""

    generation: int
    content: CopyContent


@cache
def bases() -> tuple[bytes, ...]:
    """Return the keys at which copies may be."""
    return spread_bases(b"copy", COPIES)


def write(
    servers: ShardClient, root: StoreIdentity, generation: int, records: Mapping[str, Records]
) -> None:
    """Bring each master's copy up to date, as far as masters answer."""
    content = CopyContent(root.fields(), {kind: dict(found) for kind, found in records.items()})
    encoded = msgspec.msgpack.encode(content)
    digest = hashlib.sha256(encoded).hexdigest().encode()
    found = servers.execute_each(
        [Command(base, ("HMGET", base, *FIELDS[:3])) for base in bases()], Wait.PROBE
    )
    wanted = _one_a_master(servers)
    marks = [root.store, b"%d" % generation, digest]
    commands = []
    for base, answer in zip(bases(), found, strict=True):
        if isinstance(answer, StoreError):
            continue
        if base not in wanted:
            commands += [Command(base, ("DEL", base))] if answer[0] else []
        elif answer != marks:
            same = answer[0] == root.store and answer[2] == digest
            given = [*marks, *([] if same else [encoded])]
            pairs = [part for pair in zip(FIELDS, given, strict=False) for part in pair]
            commands.append(Command(base, ("HSET", base, *pairs)))
    servers.execute_each(commands, Wait.COMMIT)


def read(servers: ShardClient) -> RecordCopy:
    """Return the copy of the newest generation; StoreUnavailable: none can be read."""
    answers = servers.execute_each(
        [Command(base, ("HMGET", base, *FIELDS)) for base in bases()], Wait.COMMIT
    )
    found = [answer for answer in answers if not isinstance(answer, StoreError) and answer[0]]
    if not found:
        raise StoreUnavailable("neither the records nor a copy of them can be read")
    newest: Sequence[Any] = max(found, key=lambda answer: int(answer[1]))
    return RecordCopy(int(newest[1]), msgspec.msgpack.decode(newest[3], type=CopyContent))


def _one_a_master(servers: ShardClient) -> set[bytes]:
    """Return the first of the bases that each master has."""
    owned: dict[object, bytes] = {}
    for base in bases():
        try:
            owned.setdefault(servers.owner(base).host, base)
        except StoreUnavailable:
            continue
    return set(owned.values())
