"""The shelf of small records, and the fence."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from ..interface import Record, Records
from .connections import Wait
from .identity import RECORDS_BASE, StoreIdentity
from .lua_library import call, pack, raw
from .shard_client import Command, CommandExecutor, ShardClient


def generation(servers: ShardClient) -> int:
    """Return how often the shelf has changed."""
    command = Command(RECORDS_BASE, ("GET", RECORDS_BASE + b":generation"))
    return int(servers.execute_one(command, Wait.COMMIT) or 0)  # requests wait for it


def incarnation(servers: ShardClient) -> str:
    """Return the run id and the replication id of the master that has the records.

    A process that was demoted and promoted again keeps its run id and gets a new replication id. It
    is asked by key, so that no server answers for a slot that it has no more.
    """
    found: bytes = servers.execute_one(Command(RECORDS_BASE, call("incarnation", RECORDS_BASE)))
    return found.decode()


def records(servers: ShardClient, kind: str) -> Records:
    """Return the records of a kind."""
    key = RECORDS_BASE + b":records:" + kind.encode()
    answer = servers.execute_one(Command(RECORDS_BASE, ("HGETALL", key)))
    return {name.decode(): value for name, value in zip(answer[::2], answer[1::2], strict=True)}


def record_keys(servers: ShardClient, kind: str) -> frozenset[str]:
    """Return the keys of the records of a kind."""
    answer = servers.execute_one(
        Command(RECORDS_BASE, ("HKEYS", RECORDS_BASE + b":records:" + kind.encode()))
    )
    return frozenset(name.decode() for name in answer)


def records_at(servers: ShardClient, kind: str, keys: Collection[str]) -> Records:
    """Return the records of a kind under some keys."""
    if not keys:
        return {}
    asked = list(keys)
    words: tuple[bytes | str | int, ...] = (
        "HMGET",
        RECORDS_BASE + b":records:" + kind.encode(),
        *asked,
    )
    answer = servers.execute_one(Command(RECORDS_BASE, words))
    return {key: value for key, value in zip(asked, answer, strict=True) if value is not None}


def record_count(servers: ShardClient, kind: str) -> int:
    """Return the number of records of a kind."""
    return int(
        servers.execute_one(
            Command(RECORDS_BASE, ("HLEN", RECORDS_BASE + b":records:" + kind.encode()))
        )
    )


def generations(servers: ShardClient) -> dict[str, int]:
    """Return the generation of the last change of each kind of record."""
    answer = servers.execute_one(Command(RECORDS_BASE, ("HGETALL", RECORDS_BASE + b":generations")))
    return {
        kind.decode(): int(number) for kind, number in zip(answer[::2], answer[1::2], strict=True)
    }


def change(
    servers: CommandExecutor, root: StoreIdentity, expected: int, given: Sequence[Record]
) -> bool:
    """Write or remove records, unless the shelf has changed since."""
    words = call("change", RECORDS_BASE, root.store, expected, packed(given))
    return bool(servers.execute_one(Command(RECORDS_BASE, words)))


def packed(given: Iterable[Record]) -> bytes:
    """Return records as the library takes them: a value that is false removes one."""
    parts = [
        part
        for kind, key, value in given
        for part in (kind, key, False if value is None else raw(value))
    ]
    return pack(parts)


def fence(servers: ShardClient, root: StoreIdentity, *, on: bool) -> None:
    """Close the store for what would change it, or open it; the shelf closes first, opens last."""
    bases = (RECORDS_BASE, *root.bases) if on else (*root.bases, RECORDS_BASE)
    for base in bases:
        servers.execute_one(Command(base, call("fence", base, int(on))))


def fenced(servers: ShardClient) -> bool:
    """Whether it is closed."""
    return bool(servers.execute_one(Command(RECORDS_BASE, ("EXISTS", RECORDS_BASE + b":fence"))))
