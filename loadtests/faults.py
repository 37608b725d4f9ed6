"""What may go wrong with a server, its store or the way to it, while devices send.

A fault lasts for a `with`. When it ends, whatever a supervisor or an operator would do by now has
been done: what was killed is started again, on what its disk holds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from math import ceil

from tests.processes import syncs_delayed
from tests.proxy import Mood
from tests.system.server import worker_killed

from .analysts import analyst_load
from .environment import Site
from .page import page

RETRY_SECONDS = 1  # what the page of an outage asks of devices
SLOW_MICROSECONDS = 50_000  # that each sync takes longer on a slow disk
HUNG_MICROSECONDS = 4_000_000  # and on one that hangs: longer than a request waits for the store
#: what stands out against the two seconds that a group waits for a server before the breaker opens
LONGER_THAN_A_COMMIT = 3.5
AHEAD_DAYS = 40  # of the clock of a host that joins with a wrong one


@contextmanager
def server_killed(site: Site) -> Iterator[None]:
    """Kill the server with all its workers."""
    site.server.kill()
    yield
    site.serve()


@contextmanager
def server_restarted(site: Site) -> Iterator[None]:
    """Stop the server as on every deploy: it drains."""
    assert site.server.stop() == 0, "a server that was asked to end did not end well"
    yield
    site.serve()


@contextmanager
def away(site: Site) -> Iterator[None]:
    """Stop the server; a page in its place asks devices to come back later."""
    with server_restarted(site), page(site.port, RETRY_SECONDS):
        yield


@contextmanager
def redis_killed(site: Site) -> Iterator[None]:
    """Kill the last server of the store."""
    node = site.engine.nodes[-1]
    node.kill()
    yield
    node.start()
    site.engine.wait()


@contextmanager
def master_hung(site: Site) -> Iterator[None]:
    """Stop the last Redis server: connections stay open, nothing is answered."""
    with site.engine.nodes[-1].frozen():
        yield
    site.engine.wait()


@contextmanager
def failover(site: Site) -> Iterator[None]:
    """Kill the last master, promote its replica; it comes back as the replica's replica."""
    site.engine.fail_over()
    yield
    site.engine.nodes[-1].start()


def clock_jump(site: Site) -> AbstractContextManager[object]:
    """Have a second host join the store with a clock that is weeks ahead, and leave again."""
    return site.second_server(ahead_days=AHEAD_DAYS)


@contextmanager
def analysts(site: Site) -> Iterator[None]:
    """Have analysts ask for the heaviest results as fast as they are answered."""
    with analyst_load(site.server.url, site.analyst_key(), segmented="plugin") as findings:
        yield
    assert findings.count(200), f"no analyst was answered: {findings.statuses}"


def _delay_syncs(site: Site, microseconds: int) -> AbstractContextManager[None]:
    """Have each sync of whoever writes take longer."""
    pids = site.engine.pids() or site.server.workers()
    return syncs_delayed(pids, microseconds, site.folder / "slow-disk.log")


@dataclass(frozen=True, slots=True)
class Fault:
    """What goes wrong, and whether it does so on the way to the server."""

    inject: Callable[[Site], AbstractContextManager[object]]
    in_network: bool = False
    lasts: float = 0.1  # the share of the run
    users: int = 0  # devices at once, so many that those who wait for a shard are not all; 0: any
    least_rate: float = 0.0  # answers a second meanwhile, as a share of those before: less fails
    least_seconds: float = 0.0  # that it lasts: over a shorter time that rate is not promised

    @property
    def run_seconds(self) -> int:
        """The seconds of a run in which it lasts long enough."""
        return ceil(self.least_seconds / self.lasts)


def _on_master(inject: Callable[[Site], AbstractContextManager[None]]) -> Fault:
    return Fault(inject, lasts=0.3, users=800, least_rate=0.3, least_seconds=LONGER_THAN_A_COMMIT)


def _on_way(mood: Mood, lasts: float) -> Fault:
    return Fault(lambda site: site.proxy.in_mood(mood), in_network=True, lasts=lasts)


#: what `--kill` names, and what `--fault` names
KILLS = ("worker", "server", "redis")
FAULTS: Mapping[str, Fault] = {
    "worker": Fault(lambda site: worker_killed(site.server)),
    "server": Fault(server_killed),
    "redis": Fault(redis_killed),
    "restart": Fault(server_restarted),
    "away": Fault(away, lasts=0.2),
    "blackhole": _on_way(Mood.BLACKHOLE, 0.2),
    "lost-replies": _on_way(Mood.LOSE_REPLY, 0.1),
    "slow-disk": Fault(lambda site: _delay_syncs(site, SLOW_MICROSECONDS), lasts=0.3),
    "hung-disk": Fault(lambda site: _delay_syncs(site, HUNG_MICROSECONDS), lasts=0.3),
    "hung-master": _on_master(master_hung),
    "failover": _on_master(failover),
    "clock-jump": Fault(clock_jump, lasts=0.3, least_rate=0.3),
    "analysts": Fault(analysts, lasts=0.3, least_rate=0.3),
}
#: faults of one kind of store
NEED_CLUSTER = frozenset({"hung-master", "failover"})
