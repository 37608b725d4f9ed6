"""Whole deployments on the loopback, and everything that goes wrong in them: one fault, one method.

    devices -> proxy -> veilcount serve, two workers -> (proxy ->) store

A fault lasts for a `with`; when it ends, whatever an operator or a supervisor would do by now has
been done: what was killed is started again, what was full has room.
"""

from __future__ import annotations

import os
import resource
import signal
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from tests.proxy import Mood, Proxy
from tests.redis_cluster import RedisCluster
from tests.redis_server import HOST, RedisServer
from tests.system.faults.campaign import Campaign
from tests.system.server import Server, free_port, wait_until

Fault = Callable[[], AbstractContextManager[None]]

WORKERS = 2
LASTS = 0.4  # seconds: many commits, at any of which it may strike
LEAST_FILE = 1 << 14  # room for the lines of a log


class Deployment:
    """A server with its store, and a way to it."""

    def __init__(self, campaign: Campaign, store: str) -> None:
        """Start serving."""
        self.campaign = campaign
        self.store = store
        self._port = free_port()
        self.server = self._serve()
        self.way = Proxy(self._port)

    @property
    def faults(self) -> dict[str, Fault]:
        """What may go wrong between devices and a server, and with the server, on every store."""
        return {
            "requests dropped": lambda: self._mood(self.way, Mood.REFUSE),
            "requests cut": lambda: self._mood(self.way, Mood.HALF_REQUEST),
            "replies lost": lambda: self._mood(self.way, Mood.LOSE_REPLY),
            "network silent": lambda: self._mood(self.way, Mood.BLACKHOLE),
            "worker killed": self.worker_killed,
            "worker stopped": self.worker_stopped,
            "server killed": self.server_killed,
            "server stopped": self.server_drained,
        }

    @contextmanager
    def worker_killed(self) -> Iterator[None]:
        """One of two; the server replaces it by itself."""
        killed = self.server.workers()[0]
        os.kill(killed, signal.SIGKILL)
        yield
        wait_until(lambda: self._all_work_but(killed))

    @contextmanager
    def worker_stopped(self) -> Iterator[None]:
        """In its tracks, with whatever it holds; then it goes on."""
        stopped = self.server.workers()[-1]
        os.kill(stopped, signal.SIGSTOP)
        yield
        os.kill(stopped, signal.SIGCONT)

    @contextmanager
    def server_killed(self) -> Iterator[None]:
        """With all its workers."""
        self.server.kill()
        yield
        self.server = self._serve()

    @contextmanager
    def server_drained(self) -> Iterator[None]:
        """By its supervisor, as on every deploy."""
        assert self.server.stop() == 0
        yield
        self.server = self._serve()

    def move(self, store: str) -> None:
        """Serve from another store from now on."""
        assert self.server.stop() == 0
        self.store = store
        self.server = self._serve()

    def close(self) -> None:
        """End everything."""
        if self.server.process.poll() is None:
            self.server.kill()
        self.way.close()

    def _all_work_but(self, killed: int) -> bool:
        """Whether there are as many workers as there should be, with another for this one."""
        workers = self.server.workers()
        return len(workers) == WORKERS and killed not in workers

    def _serve(self) -> Server:
        return self.campaign.serve(self.store, "--workers", str(WORKERS), port=self._port)

    @staticmethod
    @contextmanager
    def _mood(way: Proxy, mood: Mood) -> Iterator[None]:
        way.mood = mood
        yield
        way.mood = Mood.PASS


class OnSqlite(Deployment):
    """On a file."""

    def __init__(self, campaign: Campaign, folder: Path) -> None:
        """Make a store."""
        self.file = folder / "store.db"
        super().__init__(campaign, f"sqlite:///{self.file}")

    @property
    def faults(self) -> dict[str, Fault]:
        """A disk may be full, too."""
        return super().faults | {"disk full": self.disk_full}

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
        """Start a Redis."""
        place = folder / "redis"
        place.mkdir()
        self.redis = RedisServer(place)
        self.inner = Proxy(self.redis.port)
        self.direct = self.redis.url
        super().__init__(campaign, f"redis://{HOST}:{self.inner.port}/0")

    @property
    def faults(self) -> dict[str, Fault]:
        """What may go wrong with a Redis, or on the way to it."""
        return super().faults | {
            "calls dropped": lambda: self._mood(self.inner, Mood.REFUSE),
            "calls cut": lambda: self._mood(self.inner, Mood.HALF_REQUEST),
            "answers of Redis lost": lambda: self._mood(self.inner, Mood.LOSE_REPLY),
            "Redis out of reach": lambda: self._mood(self.inner, Mood.BLACKHOLE),
            "Redis killed": self.redis_killed,
            "both killed": self.both_killed,
            "Redis stopped": self.redis_stopped,
            "Redis out of memory": self.redis_out_of_memory,
        }

    @contextmanager
    def redis_killed(self) -> Iterator[None]:
        """And started on what its disk holds."""
        self.redis.kill()
        yield
        self.redis.start()

    @contextmanager
    def both_killed(self) -> Iterator[None]:
        """Redis and a worker, then all of the server."""
        self.redis.kill()
        os.kill(self.server.workers()[0], signal.SIGKILL)
        self.server.kill()
        yield
        self.redis.start()
        self.server = self._serve()

    @contextmanager
    def redis_stopped(self) -> Iterator[None]:
        """In its tracks."""
        self.redis.freeze()
        yield
        self.redis.thaw()

    @contextmanager
    def redis_out_of_memory(self) -> Iterator[None]:
        """It takes nothing more."""
        self.redis.ask("CONFIG", "SET", "maxmemory", "1")
        yield
        self.redis.ask("CONFIG", "SET", "maxmemory", "0")

    def close(self) -> None:
        """End everything."""
        super().close()
        self.inner.close()
        self.redis.kill()


class OnCluster(Deployment):
    """On three masters."""

    def __init__(self, campaign: Campaign, folder: Path) -> None:
        """Start a cluster."""
        self.cluster = RedisCluster(folder / "cluster")
        super().__init__(campaign, self.cluster.url)

    @property
    def faults(self) -> dict[str, Fault]:
        """What may go wrong with a master."""
        return super().faults | {
            "master killed": self.master_killed,
            "both killed": self.both_killed,
            "master stopped": self.master_stopped,
            "master out of memory": self.master_out_of_memory,
        }

    @contextmanager
    def master_killed(self) -> Iterator[None]:
        """One of three, and started on what its disk holds."""
        self.cluster.nodes[1].kill()
        yield
        self.cluster.nodes[1].start()
        self.cluster.wait()

    @contextmanager
    def both_killed(self) -> Iterator[None]:
        """All masters and the server."""
        self.cluster.close()
        self.server.kill()
        yield
        for node in self.cluster.nodes:
            node.start()
        self.cluster.wait()
        self.server = self._serve()

    @contextmanager
    def master_stopped(self) -> Iterator[None]:
        """In its tracks; not for so long that the others notice."""
        self.cluster.nodes[2].freeze()
        yield
        self.cluster.nodes[2].thaw()

    @contextmanager
    def master_out_of_memory(self) -> Iterator[None]:
        """A part of each group is written, and a part is not."""
        self.cluster.nodes[0].ask("CONFIG", "SET", "maxmemory", "1")
        yield
        self.cluster.nodes[0].ask("CONFIG", "SET", "maxmemory", "0")

    def close(self) -> None:
        """End everything."""
        super().close()
        self.cluster.close()


DEPLOYMENTS: dict[str, Callable[[Campaign, Path], Deployment]] = {
    "sqlite": OnSqlite,
    "redis": OnRedis,
    "redis-cluster": OnCluster,
}
