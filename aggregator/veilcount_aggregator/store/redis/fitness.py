"""Whether a Redis may keep a store: one that evicts would count answers twice."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from redis.exceptions import ResponseError

from ...errors import StoreUnfit
from ..contract import Durable
from .connections import Server, ask_together
from .servers import Servers

OLDEST = 7  # the first with functions
ENTRIES = 128  # of a bucket, below which it is kept packed
BITMAP = 64  # bytes of an entry, likewise

_DURABLE = {"appendonly": "yes", "appendfsync": "always"}
_PACKED = {"hash-max-listpack-entries": ENTRIES, "hash-max-listpack-value": BITMAP}
_ASKED = ("maxmemory-policy", *_DURABLE, *_PACKED)


class Fitness(NamedTuple):
    """Whether an acknowledgement outlives a power cut, and why."""

    durable: Durable
    why: str


def examine(servers: Servers) -> Fitness:
    """Return how the servers that answer keep what they are given; refuse those that forget.

    Of one that is away nothing is known; it is examined when it answers again.
    """
    return weakest([examine_server(server) for server in servers.reachable()])


def weakest(found: Sequence[Fitness]) -> Fitness:
    """Return the fitness that holds for all."""
    order = (Durable.NO, Durable.UNKNOWN, Durable.YES)
    return min(found, key=lambda each: order.index(each.durable))


def examine_server(server: Server) -> Fitness:
    """Return how one server keeps what it is given; refuse one that forgets."""
    wanted = server.address.durable
    asked = ("INFO", "server"), ("CONFIG", "GET", *_ASKED)
    version, settings = ask_together([(server, words) for words in asked])
    if not isinstance(version, ResponseError):
        refuse_old(server, version)
    if isinstance(settings, ResponseError):
        return Fitness(Durable.UNKNOWN, _unseen(server))
    words = [word.decode() for word in settings]
    return _judge(server, dict(zip(words[::2], words[1::2], strict=True)), wanted=wanted)


def refuse_old(server: Server, told: bytes) -> None:
    """Refuse what has no functions."""
    lines = dict(line.split(":", 1) for line in told.decode().splitlines() if ":" in line)
    version = lines.get("redis_version", "0")
    if int(version.split(".")[0]) < OLDEST:
        raise StoreUnfit(f"Redis at {server} is version {version}: {OLDEST} or newer is needed")


def _judge(server: Server, settings: dict[str, str], *, wanted: bool) -> Fitness:
    _require(server, settings, "maxmemory-policy", "noeviction", "it would forget spent slots")
    for name, least in _PACKED.items():
        if int(settings[name]) < least:
            _require(server, settings, name, str(least), "rows would take three times the memory")
    if not wanted:
        return Fitness(Durable.NO, "durability=relaxed: whatever Redis is set to")
    for name, value in _DURABLE.items():
        _require(server, settings, name, value, "a power cut would take acknowledged reports")
    return Fitness(Durable.YES, "appendonly yes, appendfsync always")


def _require(server: Server, settings: dict[str, str], name: str, value: str, why: str) -> None:
    if settings[name] != value:
        raise StoreUnfit(
            f"Redis at {server} has {name} {settings[name]}: {why}."
            f" Run: redis-cli -h {server.host[0]} -p {server.host[1]} CONFIG SET {name} {value}"
            " (and write it into redis.conf)"
        )


def _unseen(server: Server) -> str:
    wanted = {"maxmemory-policy": "noeviction"} | _DURABLE
    asked = ", ".join(f"{name} {value}" for name, value in wanted.items())
    return f"CONFIG is forbidden at {server}: see to it that it has {asked}"
