"""The identity of a store: its name, its secret and its shards."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from itertools import chain, count

from redis.crc import key_slot

from ...errors import StoreUnfit
from .connections import Wait, pairs
from .lua_library import RAISING, call
from .row_permutation import RowPermutation
from .shard_client import Command, ShardClient

FORMAT = b"5"
SLOTS = 16384
#: of a new store in a cluster: 3, 4, 6 and 12 masters share them evenly, without a copy
SHARDS = 12

#: the base key of the records and the identity
RECORDS_BASE = b"veilcount:{records}"


@dataclass(frozen=True, slots=True)
class StoreIdentity:
    """What was decided when the store was made, for good."""

    store: bytes
    permutation: RowPermutation
    shards: int
    #: the base key of each shard; its other keys begin with it. A reader of some shards has fewer.
    bases: tuple[bytes, ...]

    def call(self, name: str, base: bytes, *arguments: bytes | str | int) -> Command:
        """Return the call of a library function that refuses the keys of another store."""
        words = call(name, base, self.store, b"", *arguments)  # the life: `ShardClient`'s
        return Command(base, words, guarded=True, raises=name in RAISING)

    def fields(self) -> dict[bytes, bytes]:
        """Return the identity as it is stored."""
        return {
            b"format": FORMAT,
            b"store": self.store,
            b"secret": self.permutation.secret,
            b"shards": b"%d" % self.shards,
        }


def find_identity(servers: ShardClient, *, make: bool) -> StoreIdentity:
    """Return the identity of the store that is there, or make one on request."""
    command = Command(RECORDS_BASE, ("HGETALL", RECORDS_BASE + b":identity"))
    fields = pairs(servers.execute_one(command, Wait.COMMIT))
    if b"made" not in fields:
        if not make:
            raise StoreUnfit(
                f"Redis at {servers.address}: no store there: make one with `veilcount init`"
            )
        fields = _make(servers)
    return parse_identity(servers, fields)


def _make(servers: ShardClient) -> dict[bytes, bytes]:
    """Write the identity, then the shards, then a mark: an interrupted call starts again."""
    shards = servers.address.shards or (SHARDS if servers.address.cluster else 1)
    name = secrets.token_hex(16).encode()
    new = StoreIdentity(name, RowPermutation.new(), shards, spread_bases(b"", shards))
    fields = chain.from_iterable(new.fields().items())
    words = call("create_identity", RECORDS_BASE, *fields)
    kept = pairs(servers.execute_one(Command(RECORDS_BASE, words)))
    identity = parse_identity(servers, kept)
    bases = (RECORDS_BASE, *identity.bases)
    servers.execute_all([Command(base, ("SET", base, identity.store)) for base in bases])
    servers.execute_one(Command(RECORDS_BASE, ("HSET", RECORDS_BASE + b":identity", b"made", b"1")))
    return kept


def parse_identity(servers: ShardClient, kept: dict[bytes, bytes]) -> StoreIdentity:
    """Return the identity that fields hold, or refuse a format that this version cannot read."""
    if kept[b"format"] != FORMAT:
        raise StoreUnfit(
            f"Redis at {servers.address}: a store of format {kept[b'format'].decode()}; this"
            f" version reads {FORMAT.decode()}: run the version that made it, or make a new store"
        )
    shards = int(kept[b"shards"])
    if servers.address.shards not in {None, shards}:
        raise StoreUnfit(
            f"the store has {shards} shards, for good: leave out shards={servers.address.shards},"
            " or copy it to a new store with `veilcount store copy`"
        )
    permutation = RowPermutation(kept[b"secret"])
    return StoreIdentity(kept[b"store"], permutation, shards, spread_bases(b"", shards))


def spread_bases(name: bytes, count_of: int) -> tuple[bytes, ...]:
    """Return so many keys of a name, spread evenly over all slots.

    Masters have equal ranges of slots by default, so that shards are spread over them evenly.
    """
    prefix = name + b"." if name else b""
    bases = []
    for number in range(count_of):
        slots = range(SLOTS * number // count_of, SLOTS * (number + 1) // count_of)
        tried = (b"veilcount:{%b%d.%d}" % (prefix, number, at) for at in count())
        bases.append(next(base for base in tried if key_slot(base) in slots))
    return tuple(bases)
