"""The root of a store: its shards, its secret, and the name by which its parts know each other."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import count

from redis.crc import key_slot

from ...errors import StoreUnfit
from .connections import Wait
from .lua_library import call
from .row_permutation import RowPermutation
from .shard_client import Command, ShardClient

FORMAT = b"3"
SLOTS = 16384
#: of a new store in a cluster: 3, 4, 6 and 12 masters share them evenly, without a copy
SHARDS = 12

#: where records stand, beside the root
RECORDS_BASE = b"veilcount:{shelf}"


@dataclass(frozen=True)
class StoreIdentity:
    """What was decided when the store was made, for good."""

    store: bytes
    scatter: RowPermutation
    shards: int

    @cached_property
    def bases(self) -> tuple[bytes, ...]:
        """The base key of each shard; all others of the shard begin with it."""
        return tuple(_base(shard, self.shards) for shard in range(self.shards))

    def fields(self) -> dict[bytes, bytes]:
        """Return the root as it is kept."""
        return {
            b"format": FORMAT,
            b"store": self.store,
            b"secret": self.scatter.secret,
            b"shards": b"%d" % self.shards,
        }

    def of_some(self, bases: Sequence[bytes]) -> StoreIdentity:
        """Return this root with the bases of some shards alone, to read from these."""
        some = replace(self)
        some.__dict__["bases"] = tuple(bases)  # where the property caches what it returns
        return some


def find_identity(servers: ShardClient, *, make: bool) -> StoreIdentity:
    """Return the root of the store that is there, or make one if asked to."""
    asked = Command(RECORDS_BASE, ("HGETALL", RECORDS_BASE + b":root"))
    kept = _fields(servers.execute_one(asked, Wait.COMMIT))
    if b"made" not in kept:
        if not make:
            raise StoreUnfit(
                f"Redis at {servers.address}: no store there: make one with `veilcount init`"
            )
        kept = _make(servers)
    return parse_identity(servers, kept)


def _make(servers: ShardClient) -> dict[bytes, bytes]:
    """Lay the root, then the shards, then say that it is done: whoever is stopped starts again."""
    shards = servers.address.shards or (SHARDS if servers.address.cluster else 1)
    given = {
        b"format": FORMAT,
        b"store": secrets.token_hex(16).encode(),
        b"secret": RowPermutation.new().secret,
        b"shards": b"%d" % shards,
    }
    words = call("root", RECORDS_BASE, *(part for pair in given.items() for part in pair))
    kept = _fields(servers.execute_one(Command(RECORDS_BASE, words)))
    root = parse_identity(servers, kept)
    servers.ask([Command(base, ("SET", base, root.store)) for base in (RECORDS_BASE, *root.bases)])
    servers.execute_one(Command(RECORDS_BASE, ("HSET", RECORDS_BASE + b":root", b"made", b"1")))
    return kept


def parse_identity(servers: ShardClient, kept: dict[bytes, bytes]) -> StoreIdentity:
    """Return the root of the fields that are kept, or refuse what this version cannot read."""
    if kept[b"format"] != FORMAT:
        raise StoreUnfit(
            f"Redis at {servers.address}: a store of format {kept[b'format'].decode()}; this"
            f" version reads {FORMAT.decode()}: run the version that made it, or a newer one"
        )
    shards = int(kept[b"shards"])
    if servers.address.shards not in {None, shards}:
        raise StoreUnfit(
            f"the store has {shards} shards, for good: leave out shards={servers.address.shards},"
            " or copy it to a new store with `veilcount store copy`"
        )
    return StoreIdentity(kept[b"store"], RowPermutation(kept[b"secret"]), shards)


def _fields(answer: list[bytes]) -> dict[bytes, bytes]:
    return dict(zip(answer[::2], answer[1::2], strict=True))


def spread_bases(name: bytes, count_of: int) -> tuple[bytes, ...]:
    """Return so many keys of a name, spread evenly over all slots."""
    found = []
    for number in range(count_of):
        time_range = range(SLOTS * number // count_of, SLOTS * (number + 1) // count_of)
        tried = (b"veilcount:{%b.%d.%d}" % (name, number, at) for at in count())
        found.append(next(base for base in tried if key_slot(base) in time_range))
    return tuple(found)


def _base(shard: int, shards: int) -> bytes:
    """Return a base whose slot lies in the shard's stretch of all slots.

    Masters have equal stretches unless somebody moved them, so shards are spread over them evenly.
    """
    time_range = range(SLOTS * shard // shards, SLOTS * (shard + 1) // shards)
    bases = (b"veilcount:{%d.%d}" % (shard, number) for number in count())
    return next(base for base in bases if key_slot(base) in time_range)
