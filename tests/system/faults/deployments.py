"""Whole deployments on the loopback, and everything that goes wrong in them: one fault, one method.

    devices -> proxy -> veilcount serve, two workers -> (proxy ->) store

When a fault ends, whatever an operator or a supervisor would do by now has been done: what was
killed is started again, what was full has room.
"""

from __future__ import annotations

import resource
import subprocess
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from functools import partial
from pathlib import Path

from ...processes import HOST
from ...proxy import Mood, Proxy
from ...redis_cluster import RedisCluster
from ...redis_server import RedisServer
from ..server import Server, free_port, slow_commits, worker_killed, worker_stopped
from .campaign import Campaign

Fault = Callable[[], AbstractContextManager[None]]

WORKERS = 2
LASTS = 0.3  # seconds: many commits, at any of which it may strike
LATENCY = 0.005  # seconds, to a Redis and back each: requests that arrive meanwhile are a group
LEAST_FILE = 1 << 14  # room for the lines of a log


def fault(begin: Callable[[], object], *end: Callable[[], object]) -> Fault:
    """Return a fault from how it begins, and what it takes to end it."""

    @contextmanager
    def lasting() -> Iterator[None]:
        begin()
        yield
        for each in end:
            each()

    return lasting


def out_of_memory(redis: RedisServer) -> Fault:
    return fault(
        lambda: redis.ask("CONFIG", "SET", "maxmemory", "1"),
        lambda: redis.ask("CONFIG", "SET", "maxmemory", "0"),
    )


@contextmanager
def small_file_system(place: Path, size: int) -> Iterator[bool]:
    """Make a file system of so many bytes in memory; False: this user may mount none."""
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(place)]
    mounted = subprocess.run(mount, capture_output=True, check=False).returncode == 0
    try:
        yield mounted
    finally:
        if mounted:
            subprocess.run(["umount", "--lazy", str(place)], check=True)


@contextmanager
def filled(ballast: Path) -> Iterator[None]:
    """Fill a file system to the last byte."""
    with ballast.open("wb", buffering=0) as file:
        for block in (1 << 16, 1):
            with suppress(OSError):
                while True:
                    file.write(bytes(block))
    yield
    ballast.unlink()


class Deployment:
    """A server with its store, and a way to it."""

    def __init__(self, campaign: Campaign, store: str) -> None:
        self.campaign = campaign
        self.store = store
        self._port = free_port()
        self.serve()
        self.way = Proxy(self._port)

    @property
    def faults(self) -> dict[str, Fault]:
        """What may go wrong between devices and a server, and with the server, on every store."""
        return {
            "requests dropped": partial(self.way.in_mood, Mood.REFUSE),
            "requests cut": partial(self.way.in_mood, Mood.HALF_REQUEST),
            "replies lost": partial(self.way.in_mood, Mood.LOSE_REPLY),
            "network silent": partial(self.way.in_mood, Mood.BLACKHOLE),
            "worker killed": lambda: worker_killed(self.server),
            "worker stopped": lambda: worker_stopped(self.server),
            "server killed": fault(self.kill, self.serve),
            "server stopped": fault(self.drain, self.serve),
        }

    def slow_store(self) -> AbstractContextManager[None]:
        """Hold up what is written, so that requests that arrive meanwhile become groups."""
        return nullcontext()  # as slow as it is: on the way to a Redis there is latency

    def serve(self) -> None:
        workers = ("--workers", str(WORKERS))
        self.server: Server = self.campaign.serve(self.store, *workers, port=self._port)

    def kill(self) -> None:
        """End the server with all its workers, at once."""
        self.server.kill()

    def drain(self) -> None:
        """End the server by its supervisor, as on every deploy."""
        assert self.server.stop() == 0

    def move(self, store: str) -> None:
        """Serve from another store from now on."""
        self.drain()
        self.store = store
        self.serve()

    def alive(self) -> bool:
        """Whether a worker answers who asks for its health."""
        return self.server.ask("GET", "/healthz").status_code == 200

    def close(self) -> None:
        if self.server.process.poll() is None:
            self.server.kill()
        self.way.close()


class OnSqlite(Deployment):
    def __init__(self, campaign: Campaign, folder: Path) -> None:
        self.file = folder / "store.db"
        super().__init__(campaign, f"sqlite:///{self.file}")

    @property
    def faults(self) -> dict[str, Fault]:
        """A disk may be full, too, and another process may write for long."""
        return super().faults | {
            "disk full": self.disk_full,
            "lock held": self.slow_store,
        }

    def slow_store(self) -> AbstractContextManager[None]:
        return slow_commits(self.file)

    @contextmanager
    def disk_full(self) -> Iterator[None]:
        """No file of the server's may grow beyond what its log has now."""
        wal = self.file.with_name(f"{self.file.name}-wal")
        most = max(LEAST_FILE, wal.stat().st_size)
        pids = [self.server.pid, *self.server.workers(), *self.server.analysis()]
        before = resource.prlimit(self.server.pid, resource.RLIMIT_FSIZE)
        for pid in pids:
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (most, before[1]))
        yield
        for pid in pids:
            resource.prlimit(pid, resource.RLIMIT_FSIZE, before)


class OnRedis(Deployment):
    """On one Redis, with a way to it that may fail."""

    def __init__(self, campaign: Campaign, folder: Path) -> None:
        place = folder / "redis"
        place.mkdir()
        self.redis = RedisServer(place)
        self.inner = Proxy(self.redis.port, LATENCY)
        super().__init__(campaign, f"redis://{HOST}:{self.inner.port}/0")

    @property
    def faults(self) -> dict[str, Fault]:
        """What may go wrong with a Redis, or on the way to it."""
        return super().faults | {
            "calls dropped": partial(self.inner.in_mood, Mood.REFUSE),
            "calls cut": partial(self.inner.in_mood, Mood.HALF_REQUEST),
            "answers of Redis lost": partial(self.inner.in_mood, Mood.LOSE_REPLY),
            "Redis out of reach": partial(self.inner.in_mood, Mood.BLACKHOLE),
            "Redis killed": fault(self.redis.kill, self.redis.start),
            "both killed": fault(self.kill_both, self.redis.start, self.serve),
            "Redis stopped": self.redis.frozen,
            "Redis out of memory": out_of_memory(self.redis),
        }

    def kill_both(self) -> None:
        self.redis.kill()
        self.server.kill()

    def close(self) -> None:
        super().close()
        self.inner.close()
        self.redis.kill()


class OnCluster(Deployment):
    def __init__(self, campaign: Campaign, folder: Path) -> None:
        self.cluster = RedisCluster(folder / "cluster")
        super().__init__(campaign, self.cluster.url)

    @property
    def faults(self) -> dict[str, Fault]:
        first, second, third = self.cluster.nodes
        starts = [node.start for node in self.cluster.nodes]
        return super().faults | {
            "master killed": fault(second.kill, second.start, self.cluster.wait),
            "both killed": fault(self.kill_all, *starts, self.cluster.wait, self.serve),
            # not for so long that the others notice
            "master stopped": third.frozen,
            # a part of each group is written, and a part is not
            "master out of memory": out_of_memory(first),
        }

    def kill_all(self) -> None:
        self.cluster.close()
        self.server.kill()

    def close(self) -> None:
        super().close()
        self.cluster.close()


DEPLOYMENTS: dict[str, Callable[[Campaign, Path], Deployment]] = {
    "sqlite": OnSqlite,
    "redis": OnRedis,
    "redis-cluster": OnCluster,
}
