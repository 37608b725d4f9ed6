"""Redis settings that make an acknowledgement outlive a power cut.

`no-appendfsync-on-rewrite yes` is `appendfsync no` for as long as a rewrite of the append-only file
takes. `aof-load-truncated` may stay as it is: with `appendfsync always` only a write that was not
acknowledged can be cut off. `save` and `min-replicas-to-write` do not matter: at a start only the
append-only file is read, and what waits for replicas is `?replicas=N`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from redis.exceptions import ResponseError

from ...errors import StoreError, StoreUnfit
from ..health import Weakness
from .connections import RedisNode, Wait, execute_each, pairs, parse_info

OLDEST = 7  # the first with functions
WAITAOF = (7, 2)  # the first version with that command
ENTRIES = 128  # of a bucket, below which it is kept packed
BITMAP = 64  # bytes of an entry, likewise


class RequiredSetting(NamedTuple):
    """A setting's value, and what happens with another one."""

    value: str
    otherwise: str


KEEPING: dict[str, RequiredSetting] = {
    "maxmemory-policy": RequiredSetting(
        "noeviction", "it forgets spent slots, and counts reports twice"
    )
}
DURABLE: dict[str, RequiredSetting] = {
    "appendonly": RequiredSetting("yes", "a restart takes acknowledged reports"),
    "appendfsync": RequiredSetting("always", "a power cut takes acknowledged reports"),
    "no-appendfsync-on-rewrite": RequiredSetting(
        "no", "a power cut during a rewrite takes acknowledged reports"
    ),
}
LEAST: dict[str, int] = {"hash-max-listpack-entries": ENTRIES, "hash-max-listpack-value": BITMAP}
SETTINGS = (*KEEPING, *DURABLE, *LEAST)
IS_DURABLE = "appendonly yes, appendfsync always"
_SECTIONS = ("server", "replication", "persistence", "stats", "commandstats")


class ServerIdentity(NamedTuple):
    """What a server process is and whose history it has.

    A process that was demoted and promoted again keeps its run id, and the connections to it live
    on; its replication id is another. A replica that is synchronized anew, whose append-only file
    is incomplete from then on, raises the count of its master.
    """

    run: str = ""
    history: str = ""
    synchronizations: str = ""

    @classmethod
    def from_info(cls, info: Mapping[str, str]) -> ServerIdentity:
        """Read it from an answer to INFO; empty where this user may not read that."""
        return cls(*(info.get(name, "") for name in ("run_id", "master_replid", "sync_full")))


@dataclass(frozen=True, slots=True)
class NodeConfig:
    """The version, state and settings of one server."""

    server: RedisNode
    info: Mapping[str, str]
    settings: Mapping[str, str] | None  # None: this user may not read them
    replicas: tuple[tuple[str, int], ...] = field(default=())  # those that are connected

    @property
    def has_waitaof(self) -> bool:
        """Whether it has WAITAOF. Every Valkey has, and tells clients a version of Redis."""
        if "valkey_version" in self.info:
            return True
        major, minor, *_ = [*self.info.get("redis_version", "0.0").split("."), "0"]
        return (int(major), int(minor)) >= WAITAOF

    @property
    def identity(self) -> ServerIdentity:
        """Its process, its history and the synchronizations of its replicas."""
        return ServerIdentity.from_info(self.info)

    @property
    def follows(self) -> str:
        """The history that it has as a replica whose link is up; "": it has none."""
        return self.identity.history if self.info.get("master_link_status") == "up" else ""

    @property
    def rewriting(self) -> bool:
        """Whether its append-only file is being rewritten, or will be next."""
        names = ("aof_rewrite_in_progress", "aof_rewrite_scheduled")
        return any(self.info.get(name, "0") != "0" for name in names)

    @property
    def changes(self) -> str:
        """How often a setting was changed while it ran; the same as long as none was."""
        return self.info.get("cmdstat_config|set", "")


def read_configs(servers: Sequence[RedisNode]) -> list[NodeConfig]:
    """Read the state and settings of servers at once; those that do not answer are left out."""
    words = [*(("INFO", section) for section in _SECTIONS), ("CONFIG", "GET", *SETTINGS)]
    answers = execute_each([(server, word) for server in servers for word in words], Wait.PROBE)
    by_server = [answers[at : at + len(words)] for at in range(0, len(answers), len(words))]
    return [
        _node(server, settings)
        for server, settings in zip(servers, by_server, strict=True)
        if not any(isinstance(answer, StoreError) for answer in settings)
    ]


def _node(server: RedisNode, answers: Sequence[Any]) -> NodeConfig:
    *sections, settings = answers
    info = parse_info(b"\n".join(section for section in sections if isinstance(section, bytes)))
    refuse_old(server, info)
    return NodeConfig(server, info, settings_of(settings), tuple(_replicas(info)))


def settings_of(answer: Any) -> dict[str, str] | None:
    """Return what CONFIG GET answered; None: it is forbidden."""
    if isinstance(answer, ResponseError):
        return None
    return pairs([word.decode() for word in answer])


def refuse_old(server: RedisNode, info: Mapping[str, str]) -> None:
    """Refuse what has no functions. A server that hides its version is not refused."""
    version = info.get("redis_version", f"{OLDEST}")
    if int(version.split(".")[0]) < OLDEST:
        raise StoreUnfit(f"Redis at {server} is version {version}: {OLDEST} or newer is needed")


def weak_settings(
    server: RedisNode, settings: Mapping[str, str], *, durable: bool
) -> Iterator[Weakness]:
    """Yield each setting with which the server may not keep a store."""
    for name, needed in (KEEPING | (DURABLE if durable else {})).items():
        if settings[name] != needed.value:
            yield weakness(server, name, settings[name], needed)
    for name, least in LEAST.items():
        if int(settings[name]) < least:
            needed = RequiredSetting(str(least), "rows take three times the memory")
            yield weakness(server, name, settings[name], needed)


def weak_syncing(server: RedisNode, settings: Mapping[str, str]) -> Weakness | None:
    """Return the first setting for which the last write may not be on the disk."""
    for name, needed in DURABLE.items():
        if settings.get(name) != needed.value:
            return weakness(server, name, settings.get(name, ""), needed)
    return None


def program_version(info: Mapping[str, str]) -> str:
    """Return the server's program and version: Valkey 8.1.8, Redis 7.0.15."""
    if version := info.get("valkey_version"):
        return f"Valkey {version}"
    return f"Redis {info['redis_version']}"


def weakness(server: RedisNode, name: str, value: str, needed: RequiredSetting) -> Weakness:
    """Return what is wrong with a setting, and the command that mends it."""
    fix = f"Run: {set_command(server, name, needed.value)} (and write it into its configuration)"
    return Weakness(f"{name} {value}: {needed.otherwise}", f"Redis at {server}", fix)


def set_command(server: RedisNode, name: str, value: object) -> str:
    """Return the command that changes a setting; redis-cli asks for a password itself."""
    address, (host, port) = server.address, server.host
    login = f" --user {address.username}" if address.username else ""
    login += " --askpass" if address.password else ""
    tls = " --tls" if address.tls else ""
    tls += f" --cacert {address.ca}" if address.ca else ""
    return f"redis-cli -h {host} -p {port}{login}{tls} CONFIG SET {name} {value}"


def hidden_settings_hint(nodes: Iterable[NodeConfig]) -> str:
    """Return the settings an operator has to check where CONFIG is forbidden; empty if none."""
    if all(node.settings is not None for node in nodes):
        return ""
    needed = ", ".join(f"{name} {setting.value}" for name, setting in (KEEPING | DURABLE).items())
    return f"CONFIG is forbidden to this user: make sure that Redis has {needed}"


def _replicas(info: Mapping[str, str]) -> Iterator[tuple[str, int]]:
    """Yield the replicas that follow a master: `slave0:ip=..,port=..,state=online,..`."""
    for name, value in info.items():
        if name.startswith("slave") and name[5:].isdecimal():
            fields = dict(part.partition("=")[::2] for part in value.split(","))
            if fields.get("state") == "online":
                yield fields["ip"], int(fields["port"])
