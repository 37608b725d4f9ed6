"""Runs `command_app` as a person, a script and a build machine do, and finds its senders."""

from __future__ import annotations

import os
import pty
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from veilcount_client.integrations.cli_kit import sender
from veilcount_client.integrations.cli_kit.attendance import CI_VARIABLES

from ..delivery.server_fixtures import HOST, wait_until
from ..device_fixtures import definitions_text
from .running_campaign import DATES, THEME

ROOT = Path(__file__).parents[3]
APP = Path(__file__).with_name("command_app.py")
FONT = {"question": "Which font?", "values": ["serif", "sans"]}
FILE = definitions_text("acme-editor", theme=THEME | DATES, font=FONT | DATES)
SWITCHES = {*CI_VARIABLES, "DO_NOT_TRACK", "PLANT", "FRAMEWORK"}


@dataclass
class Machine:
    """A home in which a command runs, and the server that its settings name."""

    folder: Path
    url: str
    jitter: float = 0

    @property
    def home(self) -> Path:
        return self.folder / "home"

    @property
    def state(self) -> Path:
        return self.home / ".local" / "state" / "veilcount" / "acme-editor"

    def environment(self, variables: dict[str, str]) -> dict[str, str]:
        inherited = {
            name: text
            for name, text in os.environ.items()
            if name not in SWITCHES and not name.startswith(("VEILCOUNT_", "XDG_"))
        }
        paths = os.pathsep.join([str(self.folder), *(str(ROOT / name) for name in PACKAGES)])
        return inherited | {
            "HOME": str(self.home),
            "NO_PROXY": HOST,
            "PYTHONPATH": paths,
            "PYTHONWARNINGS": "error",
            "VEILCOUNT_COLLECTIONS": str(self.folder / "collections.toml"),
            "VEILCOUNT_JITTER": str(self.jitter),
            "VEILCOUNT_URL": self.url,
            **variables,
        }

    def start(
        self, *arguments: str, before: Sequence[str] = (), **variables: str
    ) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [*before, sys.executable, str(APP), *arguments],
            env=self.environment(variables),
            text=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def run(
        self, *arguments: str, code: int = 0, before: Sequence[str] = (), **variables: str
    ) -> str:
        """Run a command without a terminal, to its end; return what it prints."""
        with self.start(*arguments, before=before, **variables) as process:
            output, errors = process.communicate(timeout=60)

        assert process.returncode == code, errors
        assert not errors
        return output

    def run_on_terminal(self, *arguments: str, before: Sequence[str] = (), **variables: str) -> str:
        """Run a command as the first of a terminal, which ends with it; return all it prints."""
        terminal, device = pty.openpty()
        process = subprocess.Popen(
            ["setsid", "--ctty", *before, sys.executable, str(APP), *arguments],
            env=self.environment(variables),
            stdin=device, stdout=device, stderr=device,
        )  # fmt: skip
        os.close(device)
        output = b""
        with suppress(OSError):  # EIO: its other end is closed
            while block := os.read(terminal, 4096):
                output += block
        os.close(terminal)

        assert process.wait(60) == 0, output
        return output.decode().replace("\r\n", "\n")

    def senders(self) -> list[int]:
        """Return the processes that deliver for this home."""
        return [int(path.name) for path in Path("/proc").glob("[0-9]*") if self._is_sender(path)]

    def _is_sender(self, process: Path) -> bool:
        with suppress(OSError):
            variables = (process / "environ").read_bytes().split(b"\0")
            return f"{sender.DIRECTORY}={self.state}".encode() in variables
        return False

    def end(self) -> None:
        for pid in self.senders():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        assert wait_until(lambda: not self.senders())


PACKAGES = ("client", "shared")


@contextmanager
def machine(url: str, jitter: float = 0) -> Iterator[Machine]:
    """Yield a machine whose folder anybody can enter; whatever it still runs ends."""
    folder = Path(tempfile.mkdtemp(prefix="veilcount-command-"))
    folder.chmod(0o755)
    (folder / "home").mkdir()
    (folder / "collections.toml").write_text(FILE, encoding="utf-8")
    yielded = Machine(folder, url, jitter)
    try:
        yield yielded
    finally:
        yielded.end()
        folder.chmod(0o755)
        shutil.rmtree(folder)
