"""The shelf of small records, and the fence."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from ..interface import Record, Records
from .connections import Wait
from .identity import SHELF, Root
from .lua_library import call, pack, raw
from .shard_client import Asked, Command, ShardClient


def generation(servers: ShardClient) -> int:
    """Return how often the shelf has changed."""
    command = Command(SHELF, ("GET", SHELF + b":generation"))
    return int(servers.ask_one(command, Wait.COMMIT) or 0)  # requests wait for it


def incarnation(servers: ShardClient) -> str:
    """Return the run id and the replication id of the master that has the records.

    A process that was demoted and promoted again keeps its run id and gets a new replication id. It
    is asked by key, so that no server answers for a slot that it has no more.
    """
    found: bytes = servers.ask_one(Command(SHELF, call("incarnation", SHELF)))
    return found.decode()


def records(servers: ShardClient, kind: str) -> Records:
    """Return the records of a kind."""
    key = SHELF + b":records:" + kind.encode()
    answer = servers.ask_one(Command(SHELF, ("HGETALL", key)))
    return {name.decode(): value for name, value in zip(answer[::2], answer[1::2], strict=True)}


def record_keys(servers: ShardClient, kind: str) -> frozenset[str]:
    """Return the keys of the records of a kind."""
    answer = servers.ask_one(Command(SHELF, ("HKEYS", SHELF + b":records:" + kind.encode())))
    return frozenset(name.decode() for name in answer)


def records_at(servers: ShardClient, kind: str, keys: Collection[str]) -> Records:
    """Return the records of a kind under some keys."""
    if not keys:
        return {}
    asked = list(keys)
    words: tuple[bytes | str | int, ...] = ("HMGET", SHELF + b":records:" + kind.encode(), *asked)
    answer = servers.ask_one(Command(SHELF, words))
    return {key: value for key, value in zip(asked, answer, strict=True) if value is not None}


def record_count(servers: ShardClient, kind: str) -> int:
    """Return the number of records of a kind."""
    return int(servers.ask_one(Command(SHELF, ("HLEN", SHELF + b":records:" + kind.encode()))))


def generations(servers: ShardClient) -> dict[str, int]:
    """Return the generation of the last change of each kind of record."""
    answer = servers.ask_one(Command(SHELF, ("HGETALL", SHELF + b":generations")))
    return {
        kind.decode(): int(number) for kind, number in zip(answer[::2], answer[1::2], strict=True)
    }


def change(servers: Asked, root: Root, expected: int, given: Sequence[Record]) -> bool:
    """Write or remove records, unless the shelf has changed since."""
    words = call("change", SHELF, root.store, expected, packed(given))
    return bool(servers.ask_one(Command(SHELF, words)))


def packed(given: Iterable[Record]) -> bytes:
    """Return records as the library takes them: a value that is false removes one."""
    parts = [
        part
        for kind, key, value in given
        for part in (kind, key, False if value is None else raw(value))
    ]
    return pack(parts)


def fence(servers: ShardClient, root: Root, *, on: bool) -> None:
    """Close the store for what would change it, or open it; the shelf closes first, opens last."""
    bases = (SHELF, *root.bases) if on else (*root.bases, SHELF)
    for base in bases:
        servers.ask_one(Command(base, call("fence", base, int(on))))


def fenced(servers: ShardClient) -> bool:
    """Whether it is closed."""
    return bool(servers.ask_one(Command(SHELF, ("EXISTS", SHELF + b":fence"))))
