"""The Redis servers of a store, each from outside: all that is wrong, not the first thing alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property

from veilcount_shared.errors import VeilcountError

from ..errors import StoreError
from ..store.redis.config_check import DURABLE, KEEPING, SETTINGS, refuse_old, weak_settings
from ..store.redis.connections import RedisNode
from ..store.redis.durability import DurabilityMonitor
from ..store.redis.identity import SLOTS
from ..store.redis.shard_client import ShardClient
from ..store.redis.url import RedisUrl
from .clock_skew import skew
from .finding import Check, CheckResult, Finding, Severity, examine, ok, problems_or_ok, warn, wrong

ANSWERS = "answers"  # told only where a server does not
NEARLY, FULL = 0.75, 0.9  # of the memory
FIX = "redis-cli -h {host} -p {port} CONFIG SET {name} {value}, and write it into redis.conf"
WHOLE = "cluster-require-full-coverage"


@dataclass(frozen=True)
class RedisProbe:
    """One server, asked once for what several checks look at."""

    server: RedisNode
    cluster: bool
    clock: Callable[[], datetime]

    @cached_property
    def info(self) -> dict[str, str]:
        """What it says of itself."""
        return _lines(self.server.ask("INFO"))

    @cached_property
    def settings(self) -> dict[str, str] | None:
        """How it is set; None: that is not told to this user."""
        try:
            words = [w.decode() for w in self.server.ask("CONFIG", "GET", *SETTINGS, WHOLE)]
        except StoreError:
            return None
        return dict(zip(words[::2], words[1::2], strict=True))

    def number(self, name: str) -> int:
        """Return a figure that it says of itself; 0: it does not."""
        return int(self.info.get(name, "0"))


def examine_redis(url: str, clock: Callable[[], datetime]) -> Iterator[Finding]:
    """Yield what is found at each server of a URL."""
    address = RedisUrl.parse(url)
    with closing(ShardClient(address)) as servers:
        try:
            found = servers.all()
        except VeilcountError as error:
            yield _away("store", error)
            return
        for server in found:
            yield from _examine(RedisProbe(server, address.cluster, clock))
        if any(each.breaker.state == "closed" for each in found):
            yield from examine("store", {"replicas": _replicas}, servers)


def _examine(node: RedisProbe) -> Iterator[Finding]:
    """Yield what is found at one server; one that is away hides nothing of the others."""
    try:
        _ = node.info
    except VeilcountError as error:
        yield _away(f"Redis {node.server}" if node.cluster else "store", error)
        return
    checks = REDIS | (CLUSTER if node.cluster else {})
    yield from examine(f"Redis {node.server}", checks, node)


def _away(of: str, error: VeilcountError) -> Finding:
    fix = "see that it runs, that this machine may reach it, and that the URL is right"
    return Finding(of, ANSWERS, Severity.WRONG, str(error), fix)


def _version(node: RedisProbe) -> Iterator[CheckResult]:
    refuse_old(node.server, node.info)
    yield ok(f"version {node.info['redis_version']}")


def _settings(node: RedisProbe) -> Iterator[CheckResult]:
    settings = node.settings
    if settings is None:
        wanted = ", ".join(f"{name} {each.value}" for name, each in (KEEPING | DURABLE).items())
        yield warn("CONFIG is forbidden to this user", f"see to it that it has {wanted}")
        return
    yield from problems_or_ok(
        _weak(node, settings), "noeviction, appendonly yes, appendfsync always"
    )


def _weak(node: RedisProbe, settings: Mapping[str, str]) -> Iterator[CheckResult]:
    for each in weak_settings(node.server, settings, durable=True):
        yield wrong(each.what, each.fix)


def _coverage(node: RedisProbe) -> Iterator[CheckResult]:
    host, port = node.server.host
    if node.settings is not None and node.settings[WHOLE] != "no":
        fix = FIX.format(host=host, port=port, name=WHOLE, value="no")
        yield warn(f"{WHOLE} yes: one master that is down stops them all", fix)
    else:
        yield ok("a master that is down stops its own shards alone")


def _memory(node: RedisProbe) -> Iterator[CheckResult]:
    limit = node.number("maxmemory") or node.number("total_system_memory")
    used = node.number("used_memory")
    whose = "maxmemory" if node.number("maxmemory") else "the machine's memory (no maxmemory)"
    share = used / limit if limit else 0.0
    told = f"{share:.0%} of {whose} is used"
    fix = "raise maxmemory, or give the machine more: when it is full, no report is taken"
    if node.number("evicted_keys"):
        yield wrong(
            f"{node.number('evicted_keys'):,} keys were evicted: spent slots are forgotten",
            "set noeviction; what was counted since may be counted twice",
        )
    if share >= FULL:
        yield wrong(told, fix)
    elif share >= NEARLY:
        yield warn(told, fix)
    else:
        yield ok(told)


def _disk(node: RedisProbe) -> Iterator[CheckResult]:
    fix = "look into its log: most often the disk is full, or it may not write there"
    failing = [
        name
        for name in ("aof_last_write_status", "aof_last_bgrewrite_status", "rdb_last_bgsave_status")
        if node.info.get(name, "ok") != "ok"
    ]
    if node.info.get("loading", "0") != "0":
        yield warn("it still reads its own files", "wait, and look again")
    for name in failing:
        yield wrong(f"{name} is {node.info[name]}", fix)
    if not failing:
        yield ok("what it wrote last has reached its disk")


def _replicas(servers: ShardClient) -> Iterator[CheckResult]:
    """Look at what only replicas show: how many there are, and what a promotion would bring."""
    masters = {f"Redis at {server}" for server in servers.all()}  # their settings stand above
    complaints = [
        (wrong if each.blocks else warn)(f"{each.where}: {each.what}", each.fix)
        for each in DurabilityMonitor(servers).look().weaknesses
        if each.passing or each.where not in masters
    ]
    wanted = servers.address.replicas
    yield from problems_or_ok(
        complaints, f"{wanted} confirm each write" if wanted else "none confirms"
    )


def _role(node: RedisProbe) -> Iterator[CheckResult]:
    role = node.info.get("role", "")
    if role == "master":
        yield ok(f"a master with {node.number('connected_slaves')} replicas")
    else:
        yield wrong(f"it is a {role}: it takes no writes", "give the master in the store's URL")


def _clock(node: RedisProbe) -> Iterator[CheckResult]:
    asked = node.clock()
    seconds, micros = map(int, node.server.ask("TIME"))
    yield from skew(datetime.fromtimestamp(seconds + micros / 1e6, UTC), asked, node.clock())


def _cluster(node: RedisProbe) -> Iterator[CheckResult]:
    told = _lines(node.server.ask("CLUSTER", "INFO"))
    state, slots = told.get("cluster_state", ""), int(told.get("cluster_slots_ok", "0"))
    if state == "ok" and slots == SLOTS:
        yield ok(f"all {SLOTS:,} slots are served by {told.get('cluster_size')} masters")
    else:
        yield wrong(
            f"cluster_state {state}, {slots:,} of {SLOTS:,} slots are served",
            "bring the missing masters back: the reports of their slots wait on the devices",
        )


def _lines(told: bytes) -> dict[str, str]:
    lines = (line for line in told.decode().splitlines() if ":" in line)
    return {name: value for name, _, value in (line.partition(":") for line in lines)}


REDIS: dict[str, Check[RedisProbe]] = {
    "version": _version,
    "settings": _settings,
    "memory": _memory,
    "disk": _disk,
    "role": _role,
    "clock": _clock,
}
CLUSTER: dict[str, Check[RedisProbe]] = {"cluster": _cluster, "coverage": _coverage}
