"""What may go wrong with a server, its store or the way to it, while devices send.

A fault lasts for a `with`. When it ends, whatever a supervisor or an operator would do by now has
been done: what was killed is started again, on what its disk holds.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from math import ceil
from pathlib import Path

from tests.proxy import Mood
from tests.system.server import wait_until

from .analysts import analyst_load
from .environment import Site
from .page import page

RETRY_SECONDS = 1  # what the page of an outage asks of devices
SLOW_MICROSECONDS = 50_000  # that each sync takes longer on a slow disk
HUNG_MICROSECONDS = 4_000_000  # and on one that hangs: longer than a request waits for the store
SYNCS = "fsync,fdatasync"
#: what stands out against the two seconds that a group waits for a server before the breaker opens
LONGER_THAN_A_COMMIT = 3.5
AHEAD_DAYS = 40  # of the clock of a host that joins with a wrong one


@contextmanager
def worker_killed(site: Site) -> Iterator[None]:
    """One of the server's processes, as by the kernel when memory ends; it is replaced."""
    before = site.server.workers()
    os.kill(before[0], signal.SIGKILL)
    yield
    wait_until(lambda: len(site.server.workers()) == len(before) and _new(site, before[0]))


def _new(site: Site, killed: int) -> bool:
    return killed not in site.server.workers()


@contextmanager
def server_killed(site: Site) -> Iterator[None]:
    """With all its workers."""
    site.server.kill()
    yield
    site.serve()


@contextmanager
def server_restarted(site: Site) -> Iterator[None]:
    """By its supervisor, as on every deploy: it drains."""
    assert site.server.stop() == 0, "a server that was asked to end did not end well"
    yield
    site.serve()


@contextmanager
def redis_killed(site: Site) -> Iterator[None]:
    """One server of the store, the last."""
    node = site.engine.nodes[-1]
    node.kill()
    yield
    node.start()
    site.engine.whole()


@contextmanager
def away(site: Site) -> Iterator[None]:
    """The server is stopped, and a page in its place asks devices to come back later."""
    assert site.server.stop() == 0, "a server that was asked to end did not end well"
    with page(site.port, RETRY_SECONDS):
        yield
    site.serve()


@contextmanager
def master_hung(site: Site) -> Iterator[None]:
    """The last Redis server stops in its tracks: connections stay open, nothing is answered."""
    node = site.engine.nodes[-1]
    node.freeze()
    try:
        yield
    finally:
        node.thaw()
    site.engine.whole()


@contextmanager
def failover(site: Site) -> Iterator[None]:
    """The last master is killed, its replica promoted; it comes back as the replica's replica."""
    site.engine.fail_over()
    yield
    site.engine.nodes[-1].start()


@contextmanager
def clock_jump(site: Site) -> Iterator[None]:
    """A second host joins the store with a clock that is weeks ahead, and leaves again."""
    with site.second_server(ahead_days=AHEAD_DAYS):
        yield


@contextmanager
def analysts(site: Site) -> Iterator[None]:
    """Analysts ask for the heaviest results as fast as they are answered."""
    with analyst_load(site.server.url, site.analyst_key(), segmented="plugin") as found:
        yield
    assert found.count(200), f"no analyst was answered: {found.statuses}"


@contextmanager
def _syncs_delayed(site: Site, microseconds: int) -> Iterator[None]:
    """Each sync of whoever writes takes longer."""
    pids = site.engine.pids() or site.server.workers()
    whom = [word for pid in pids for word in ("--attach", str(pid))]
    log = site.folder / "slow-disk.log"
    what = [f"--trace={SYNCS}", f"--inject={SYNCS}:delay_exit={microseconds}"]
    tracer = subprocess.Popen(["strace", "-f", "-o", str(log), *what, *whom], stderr=-3)
    try:
        wait_until(lambda: _traced(pids))
        yield
    finally:
        tracer.send_signal(signal.SIGINT)
        tracer.wait()
    assert "(DELAYED)" in log.read_text(encoding="utf-8"), "no sync was slowed down"


def _traced(pids: list[int]) -> bool:
    """Whether a tracer has hold of each of these."""
    states = (Path(f"/proc/{pid}/status").read_text(encoding="ascii") for pid in pids)
    return all("TracerPid:\t0\n" not in state for state in states)


@contextmanager
def _mood(site: Site, mood: Mood) -> Iterator[None]:
    site.proxy.mood = mood
    yield
    site.proxy.mood = Mood.PASS


@dataclass(frozen=True, slots=True)
class Fault:
    """What goes wrong, and whether it does so on the way to the server."""

    inject: Callable[[Site], AbstractContextManager[None]]
    in_network: bool = False
    lasts: float = 0.1  # the share of the run
    users: int = 0  # devices at once, so many that those who wait for a shard are not all; 0: any
    least_rate: float = 0.0  # answers a second meanwhile, as a share of those before: less fails
    least_seconds: float = 0.0  # that it lasts: over a shorter time that rate is not promised

    @property
    def run_seconds(self) -> int:
        """The seconds of a run in which it lasts long enough."""
        return ceil(self.least_seconds / self.lasts)


#: what `--kill` names, and what `--fault` names
KILLS = ("worker", "server", "redis")
FAULTS: Mapping[str, Fault] = {
    "worker": Fault(worker_killed),
    "server": Fault(server_killed),
    "redis": Fault(redis_killed),
    "restart": Fault(server_restarted),
    "away": Fault(away, lasts=0.2),
    "blackhole": Fault(lambda site: _mood(site, Mood.BLACKHOLE), in_network=True, lasts=0.2),
    "lost-replies": Fault(lambda site: _mood(site, Mood.LOSE_REPLY), in_network=True),
    "slow-disk": Fault(lambda site: _syncs_delayed(site, SLOW_MICROSECONDS), lasts=0.3),
    "hung-disk": Fault(lambda site: _syncs_delayed(site, HUNG_MICROSECONDS), lasts=0.3),
    "hung-master": Fault(
        master_hung, lasts=0.3, users=800, least_rate=0.3, least_seconds=LONGER_THAN_A_COMMIT
    ),
    "failover": Fault(
        failover, lasts=0.3, users=800, least_rate=0.3, least_seconds=LONGER_THAN_A_COMMIT
    ),
    "clock-jump": Fault(clock_jump, lasts=0.3, least_rate=0.3),
    "analysts": Fault(analysts, lasts=0.3, least_rate=0.3),
}
#: faults of one kind of store
NEED_CLUSTER = frozenset({"hung-master", "failover"})
