"""Checks of each Redis server of a store, over separate connections."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from typing import NamedTuple

from veilcount_serving.findings import (
    UNREACHABLE,
    Check,
    CheckResult,
    Finding,
    Severity,
    examine,
    graded,
    ok,
    or_ok,
    problems_or_ok,
    warn,
    wrong,
)
from veilcount_shared.errors import VeilcountError

from ...errors import StoreError
from ..engine import RESPONDS
from ..retention.skew_check import skew
from .config_check import (
    DURABLE,
    KEEPING,
    SETTINGS,
    program_version,
    read_configs,
    refuse_old,
    set_command,
    weak_settings,
)
from .connections import RedisNode, Wait
from .durability import VOUCHED, DurabilityMonitor
from .identity import SLOTS
from .shard_client import ShardClient
from .url import RedisUrl

NEARLY, FULL = 0.75, 0.9  # of the memory
COVERAGE = "cluster-require-full-coverage"
KEY_PREFIX = b"veilcount:"
SCAN_KEYS, MOST_SCANS = 1_000, 100  # a call of SCAN takes less than a millisecond


class RecommendedSetting(NamedTuple):
    """The values of a setting with which a server does well, one of them, and what others cause."""

    values: range
    value: int
    otherwise: str


UNLIMITED = 1 << 31
RECOMMENDED: dict[str, RecommendedSetting] = {
    "timeout": RecommendedSetting(
        range(1), 0, "it closes idle connections, and a request that meets this gets 503"
    ),
    # A worker may open some forty: its threads, its commits and its probes.
    "maxclients": RecommendedSetting(
        range(1_000, UNLIMITED), 10_000, "workers that find no free connection answer 503"
    ),
    "auto-aof-rewrite-percentage": RecommendedSetting(
        range(1, UNLIMITED), 100, "the append-only file grows until its disk is full"
    ),
}


@dataclass(frozen=True)
class RedisProbe:
    """One server; information that several checks need is requested once."""

    server: RedisNode
    cluster: bool
    clock: Callable[[], datetime]

    @cached_property
    def info(self) -> dict[str, str]:
        """The response to INFO."""
        return _lines(self.server.ask("INFO"))

    @cached_property
    def settings(self) -> dict[str, str] | None:
        """Its settings; None if this user may not read them."""
        names = (*SETTINGS, *RECOMMENDED, COVERAGE)
        try:
            words = [w.decode() for w in self.server.ask("CONFIG", "GET", *names)]
        except StoreError:
            return None
        return dict(zip(words[::2], words[1::2], strict=True))

    def fix(self, name: str, value: object) -> str:
        """Return the command that changes a setting."""
        return f"{set_command(self.server, name, value)}, and add it to its configuration"

    def number(self, name: str) -> int:
        """Return a number of INFO, 0 if it is missing."""
        return int(self.info.get(name, "0"))


def examine_redis(url: str, clock: Callable[[], datetime]) -> Iterator[Finding]:
    """Yield the findings of each server of a URL."""
    address = RedisUrl.parse(url)
    with closing(ShardClient(address)) as servers:
        try:
            nodes = servers.all()
        except VeilcountError as error:
            yield _unavailable("store", error)
            return
        for server in nodes:
            yield from _examine(RedisProbe(server, address.cluster, clock))
        if any(node.breaker.state == "closed" for node in nodes):
            yield from examine("store", {"replicas": _replicas}, servers)


def _examine(node: RedisProbe) -> Iterator[Finding]:
    """Yield the findings of one server, whether or not others are available."""
    try:
        _ = node.info
    except VeilcountError as error:
        yield _unavailable(f"Redis {node.server}" if node.cluster else "store", error)
        return
    checks = REDIS | (CLUSTER if node.cluster else {})
    yield from examine(f"Redis {node.server}", checks, node)


def _unavailable(target: str, error: VeilcountError) -> Finding:
    return Finding(target, RESPONDS, Severity.WRONG, str(error), UNREACHABLE)


def _version(node: RedisProbe) -> Iterator[CheckResult]:
    refuse_old(node.server, node.info)
    yield ok(program_version(node.info))


def _settings(node: RedisProbe) -> Iterator[CheckResult]:
    settings = node.settings
    if settings is None and node.server.address.managed:
        yield ok(VOUCHED)
        return
    if settings is None:
        wanted = ", ".join(
            f"{name} {setting.value}" for name, setting in (KEEPING | DURABLE).items()
        )
        yield warn("this user may not use CONFIG", f"make sure that the server has {wanted}")
        return
    yield from problems_or_ok(
        _weak(node, settings), "noeviction, appendonly yes, appendfsync always"
    )


def _weak(node: RedisProbe, settings: Mapping[str, str]) -> Iterator[CheckResult]:
    for weak_setting in weak_settings(
        node.server, settings, durable=not node.server.address.managed
    ):
        yield wrong(weak_setting.what, weak_setting.fix)
    for name, setting in RECOMMENDED.items():
        if int(settings.get(name, setting.value)) not in setting.values:
            what = f"{name} {settings[name]}: {setting.otherwise}"
            yield warn(what, node.fix(name, setting.value))


def _coverage(node: RedisProbe) -> Iterator[CheckResult]:
    if node.settings is not None and node.settings[COVERAGE] != "no":
        what = f"{COVERAGE} yes: one failed master stops all of them"
        yield warn(what, node.fix(COVERAGE, "no"))
    else:
        yield ok("a failed master stops only its own shards")


def _memory(node: RedisProbe) -> Iterator[CheckResult]:
    limit = node.number("maxmemory") or node.number("total_system_memory")
    used = node.number("used_memory")
    whose = "maxmemory" if node.number("maxmemory") else "the machine's memory"
    share = used / limit if limit else 0.0
    fix = "raise maxmemory, or add memory: when it is full, reports are not accepted"
    if node.number("evicted_keys"):
        yield wrong(
            f"{node.number('evicted_keys'):,} keys were evicted: spent slots are lost",
            "set noeviction; reports since then may be counted twice",
        )
    if not node.number("maxmemory"):
        # Half: a rewrite of the append-only file may copy every page that changes meanwhile.
        yield warn(
            "no maxmemory: the kernel ends a Redis for which the machine's memory does not suffice",
            node.fix("maxmemory", f"{max(limit // 2 >> 20, 1)}mb"),
        )
    message = f"{share:.0%} of {whose} is used"
    yield graded(message, fix, is_wrong=share >= FULL, is_doubtful=share >= NEARLY)


def _disk(node: RedisProbe) -> Iterator[CheckResult]:
    fix = "read its log: most often the disk is full or not writable"
    failing = [
        name
        for name in ("aof_last_write_status", "aof_last_bgrewrite_status", "rdb_last_bgsave_status")
        if node.info.get(name, "ok") != "ok"
    ]
    if node.info.get("loading", "0") != "0":
        yield warn("it is still loading its data", "wait, and run this again")
    for name in failing:
        yield wrong(f"{name} is {node.info[name]}", fix)
    if not failing:
        yield ok("its last writes reached the disk")


def _replicas(servers: ShardClient) -> Iterator[CheckResult]:
    """Check the replicas: their number, and what a promotion would change."""
    masters = {f"Redis at {server}" for server in servers.all()}  # their settings are checked above
    problems = [
        (wrong if weakness.blocks else warn)(f"{weakness.where}: {weakness.what}", weakness.fix)
        for weakness in DurabilityMonitor(servers).look().weaknesses
        if weakness.passing or weakness.where not in masters
    ]
    replicas = servers.address.replicas
    confirming = f"{replicas} confirm each write" if replicas else "there are none"
    yield from problems_or_ok([*problems, *_unconfirming(servers)], confirming)


def _unconfirming(servers: ShardClient) -> Iterator[CheckResult]:
    """Yield the masters whose replicas may lack what was acknowledged."""
    for node in () if servers.address.replicas else read_configs(servers.all()):
        if node.replicas:
            yield warn(
                f"Redis at {node.server}: {len(node.replicas)} replicas, and no write waits for"
                " them: a promotion loses acknowledged reports",
                f"end the store's URL in ?replicas={len(node.replicas)}",
            )


def _role(node: RedisProbe) -> Iterator[CheckResult]:
    role = node.info.get("role", "")
    if role == "master":
        yield ok("it is a master")
    else:
        yield wrong(f"it is a {role}, which accepts no writes", "use the master in the store's URL")


def _password(node: RedisProbe) -> Iterator[CheckResult]:
    """Check whether it answers somebody without a password."""
    address = replace(node.server.address, username=None, password=None)
    stranger = RedisNode.at(node.server.host, address)
    try:
        stranger.ask("PING", wait=Wait.PROBE)
    except StoreError:
        yield ok("it answers nobody without a password")
    else:
        yield warn(
            "no password: whoever reaches it can read pseudonyms, and change or delete the store",
            "set requirepass in its configuration, and give it in the store's URL: redis://:PASSWORD@host",
        )
    finally:
        stranger.disconnect(idle=False)


@or_ok("it holds nothing but the store")
def _keys(node: RedisProbe) -> Iterator[CheckResult]:
    """Check for another application's keys, in a sample of a large store: SCAN has no order."""
    fix = "give each its own Redis: they share memory and limits, and FLUSHALL deletes both"
    own = f"db{node.server.address.database}"
    databases = [name for name in node.info if re.fullmatch(r"db\d+", name) and name != own]
    if databases:
        yield warn(f"other databases of this server are in use: {', '.join(databases)}", fix)
    cursor: bytes = b"0"
    for _ in range(MOST_SCANS):
        cursor, names = node.server.ask("SCAN", cursor, "COUNT", SCAN_KEYS)
        if not all(name.startswith(KEY_PREFIX) for name in names):
            yield warn("the store's database has keys of another application", fix)
            return
        if cursor == b"0":
            return


def _clock(node: RedisProbe) -> Iterator[CheckResult]:
    requested_at = node.clock()
    seconds, micros = map(int, node.server.ask("TIME"))
    yield from skew(datetime.fromtimestamp(seconds + micros / 1e6, UTC), requested_at, node.clock())


def _cluster(node: RedisProbe) -> Iterator[CheckResult]:
    info = _lines(node.server.ask("CLUSTER", "INFO"))
    state, slots = info.get("cluster_state", ""), int(info.get("cluster_slots_ok", "0"))
    if state == "ok" and slots == SLOTS:
        yield ok(f"all {SLOTS:,} slots are served by {info.get('cluster_size')} masters")
    else:
        yield wrong(
            f"cluster_state {state}, {slots:,} of {SLOTS:,} slots are served",
            "restore the missing masters: reports of their slots wait on the devices",
        )


def _lines(response: bytes) -> dict[str, str]:
    lines = (line for line in response.decode().splitlines() if ":" in line)
    return {name: value for name, _, value in (line.partition(":") for line in lines)}


REDIS: dict[str, Check[RedisProbe]] = {
    "version": _version,
    "settings": _settings,
    "memory": _memory,
    "disk": _disk,
    "role": _role,
    "password": _password,
    "other keys": _keys,
    "clock": _clock,
}
CLUSTER: dict[str, Check[RedisProbe]] = {"cluster": _cluster, "coverage": _coverage}
