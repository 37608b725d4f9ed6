"""An operator's host, on which a section of docs/drills.md is carried out as it stands there.

The page names a host's folders, addresses and services; here a folder, ports of the loopback and
real servers are in their place. bash runs each command, except that `systemctl` starts and stops
servers of the test. Words in capitals are replaced by what the test gives for them.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

from ...docs.output_match import Untrue, check
from ...docs.page_parser import ROOT, Block, steps
from ...docs.shell_blocks import Command, commands
from ..server import Server, free_port, wait_until

PAGE = ROOT / "docs" / "drills.md"
ENVIRONMENT = "/etc/veilcount/environment"
FOLDERS = ("/etc/veilcount", "/var/lib/veilcount", "/var/backups/veilcount", "/opt/veilcount")
AGGREGATOR, ISSUER = "veilcount", "veilcount-issuer"
ADDRESSES = {AGGREGATOR: "https://stats.example.org", ISSUER: "http://127.0.0.1:8430"}
PROGRAMS = {AGGREGATOR: ("veilcount_aggregator",), ISSUER: ("veilcount_aggregator", "issuer")}
SECONDS = 20.0  # in which a server takes up a change
HEADING = re.compile(r"^## (.+)$", re.MULTILINE)


def sections() -> dict[str, list[Block]]:
    """Return the blocks of each drill, by its heading; "": of the introduction."""
    _, *parts = HEADING.split("\n## \n" + PAGE.read_text(encoding="utf-8"))
    texts = dict(zip(parts[::2], parts[1::2], strict=True))
    return {
        title: [step for step in steps(text) if isinstance(step, Block)]
        for title, text in texts.items()
    }


@dataclass
class Service:
    """A server that `systemctl` starts and stops, at an address that stays."""

    folder: Path
    flags: Sequence[str] = ()
    program: tuple[str, ...] = ()
    python: Path = Path(sys.executable)
    packages: str | None = None  # PYTHONPATH; None: of this process
    port: int = field(default_factory=free_port)
    server: Server | None = None

    def start(self, environ: Mapping[str, str]) -> None:
        """Start it with the settings of its host."""
        path = {} if self.packages is None else {"PYTHONPATH": self.packages}
        self.server = Server(
            environ["VEILCOUNT_STORE"],
            self.folder,
            *self.flags,
            port=self.port,
            environ={**environ, **path},
            program=self.program,
            python=self.python,
        )

    def stop(self) -> None:
        """End it as systemd does, and require that it ends well."""
        assert self.server is not None
        assert self.server.stop() == 0, self.server.log_text()
        self.server = None

    def close(self) -> None:
        if self.server is not None:
            self.server.kill()


class Host:
    """A host: its folders, its settings and its one service."""

    def __init__(self, folder: Path, unit: str, *, store: str = "", flags: Sequence[str] = ()):
        """Make the folders; the store is a file of the host by default."""
        self.folder, self.unit = folder, unit
        self.names: dict[str, str] = {}
        for each in FOLDERS:
            (folder / each[1:]).mkdir(parents=True)
        file = "issuer.db" if unit == ISSUER else "store.db"
        place = self.here(f"sqlite:////var/lib/veilcount/{file}")
        self.write_settings(VEILCOUNT_STORE=store or place)
        self.service = Service(folder, flags, PROGRAMS[unit])
        self.names[ADDRESSES[unit]] = self.url

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.service.port}"

    @property
    def settings(self) -> dict[str, str]:
        """Return the settings of the host, as systemd reads them."""
        lines = self.path(ENVIRONMENT).read_text(encoding="utf-8").splitlines()
        return dict(line.split("=", 1) for line in lines)

    @property
    def store(self) -> str:
        return self.settings["VEILCOUNT_STORE"]

    def write_settings(self, **settings: str) -> None:
        """Write settings, next to those that are there."""
        file = self.path(ENVIRONMENT)
        merged = (self.settings if file.exists() else {}) | settings
        file.write_text("".join(f"{name}={value}\n" for name, value in merged.items()))

    def path(self, name: str) -> Path:
        """Return where a file of the page is."""
        return Path(self.here(name))

    def here(self, text: str) -> str:
        """Return a text of the page with the names of the test."""
        names = {each: f"{self.folder}{each}" for each in FOLDERS} | self.names
        longest_first = sorted(names, key=len, reverse=True)
        return re.sub("|".join(map(re.escape, longest_first)), lambda name: names[name[0]], text)

    def run(self, line: str) -> str:
        """Run a command line of the page; return what it prints."""
        words = shlex.split(self.here(line))
        if words[0] == "systemctl":
            self._control(words[1], words[2])
            return ""
        settings = f"set -a; . {self.path(ENVIRONMENT)}; set +a; "
        own = {name: v for name, v in os.environ.items() if not name.startswith("VEILCOUNT_")}
        done = subprocess.run(
            ["bash", "-c", settings + self.here(line)],
            cwd=self.path("/var/lib/veilcount"),
            env=own | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        if done.returncode:
            raise Untrue(f"{line}: exit code {done.returncode}: {done.stdout}")
        return done.stdout

    def _control(self, verb: str, unit: str) -> None:
        assert unit == self.unit, f"{unit} is not on this host"
        if verb in {"stop", "restart"}:
            self.service.stop()
        if verb in {"start", "restart"}:
            self.service.start(self.settings)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.service.close()


class Drill:
    """The blocks of one section, carried out one after the other, to the last."""

    def __init__(self, title: str, *hosts: Host) -> None:
        """Carry it out on a host, or on several in turns."""
        self._title, self._hosts = title, {host.unit: host for host in hosts}
        self._blocks = sections()[title]
        self._first = hosts[0].unit

    def block(self, unit: str = "") -> str:
        """Carry out the next block on a host; return what its last command printed."""
        block, host = self._blocks.pop(0), self._hosts[unit or self._first]
        printed = ""
        for command in commands(block):
            printed = self._carry_out(command, host)
        return printed

    def _carry_out(self, command: Command, host: Host) -> str:
        printed = host.run(command.text)
        if command.prints is None:
            return printed
        if command.text.startswith("curl "):  # it asks until the server has taken up a change
            wait_until(lambda: _shows(command, host, host.run(command.text)), SECONDS)
        else:
            expected = _narrow(host.here(command.prints))
            check(expected, _narrow(printed), f"{self._title}: {command.text}")
        return printed

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None:
            assert self._blocks == [], f"{self._title}: not carried out to its end"


def _narrow(text: str) -> str:
    """Return a text whose columns are one space apart: their width is that of the content."""
    return re.sub(" +", " ", text)


def _shows(command: Command, host: Host, printed: str) -> bool:
    return host.here(command.prints or "").strip() == printed.strip()
