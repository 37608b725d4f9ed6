"""Shell blocks: each command line is run; an unknown command is an error.

`veilcount` and `python -m veilcount_client` run in this process, the rest as processes. An install
is compared with what the distribution offers, not done.
"""

from __future__ import annotations

import io
import os
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from unittest.mock import patch

from veilcount_aggregator.operate.cli.main import run as run_veilcount
from veilcount_client.__main__ import run as run_client
from veilcount_shared.installing import FOLDERS

from .output_match import Untrue, check
from .page_parser import ROOT, Block, Unreadable
from .workspace import Place

PROMPT = "$ "
PIPE = "|"
CLIENT = ["python", "-m", "veilcount_client"]
PROGRAMS = frozenset({"cat", "curl", "ls", "python"})  # what a page may start as it is
STARTS = {"python": [sys.executable], "veilcount": [sys.executable, "-m", "veilcount"]}
PYTEST = {
    "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",  # a reader has ours alone, and that one is named
    "PYTEST_PLUGINS": "veilcount_client.testing.fixtures",
}

_ASSIGNMENT = re.compile(r"[A-Z_]+=")
#: the folders of a checkout that are installed: no package index has the distributions yet
DISTRIBUTIONS = tuple(FOLDERS.values())
_CHECKOUT = re.compile(r"([./\w]+)(?:\[([\w,-]+)\])?")
_DEV = re.compile(r"^(\w+)(?:\)| \|)", re.MULTILINE)

Done = tuple[int, str]  # an exit code, and what was printed


@dataclass(frozen=True, slots=True)
class Command:
    """A line, and the output that the page shows; None: it shows none."""

    text: str
    line: int
    prints: str | None = None


def commands(block: Block) -> Iterator[Command]:
    """Yield the commands of a block; a `console` shows their output, too."""
    text = block.text.replace("\\\n", " ")  # a long line goes on
    if block.language == "sh":
        for number, line in enumerate(text.splitlines()):
            if line.strip() and not line.lstrip().startswith("#"):
                yield Command(line, block.line + number)
        return
    if not text.startswith(PROMPT):
        raise Unreadable(f"line {block.line}: a console begins with `{PROMPT}`")
    for part in re.split(rf"^{re.escape(PROMPT)}", text, flags=re.MULTILINE)[1:]:
        line, _, prints = part.partition("\n")
        yield Command(line, block.line, prints)


class Shell:
    """Runs lines one after the other; after a failure the page must `echo $?`."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._code = 0
        self._variables: dict[str, str] = {}

    def run(self, command: Command, where: str) -> None:
        """Run a line and compare what it prints."""
        with patch.dict(os.environ, self._variables):
            self._run(command, where)

    def _run(self, command: Command, where: str) -> None:
        words = shlex.split(self._place.here(command.text), comments=True)
        words = [os.path.expandvars(word) if word != "$?" else str(self._code) for word in words]
        if self._code and words[:1] != ["echo"]:
            raise Untrue(f"{where}: the command before it failed with {self._code}")
        self._code, printed = self._do(words)
        if command.prints is not None:
            check(command.prints, self._place.there(printed), f"{where}: {command.text}")
        elif self._code:
            raise Untrue(f"{where}: {command.text} failed with {self._code}: {printed}")
        if self._place.server:
            self._place.server.refresh()

    def end(self, where: str) -> None:
        """Refuse a block that ends in a failure which the page does not show."""
        if self._code:
            raise Untrue(f"{where}: the last command failed with {self._code}")

    def _do(self, words: Sequence[str]) -> Done:
        """Run a command; return the exit code and the output."""
        if PIPE in words:
            return _pipeline(_parts(words))
        name, *arguments = words
        if _ASSIGNMENT.match(name):  # for this command alone
            with patch.dict(os.environ, [name.split("=", 1)]):
                return self._do(arguments)
        if name == "export":  # for the lines behind; the page's Python is another process
            pairs = (pair.partition("=") for pair in arguments)
            self._variables |= {name: value for name, _, value in pairs}
            return 0, ""
        if name in OURS:
            return OURS[name](arguments)
        if list(words[:3]) == CLIENT:
            return _in_process(lambda: run_client(words[3:]))
        if name in PROGRAMS:
            return _pipeline([words])
        raise Unreadable(f"{' '.join(words)}: an unknown command")


def _in_process(run: Callable[[], int]) -> Done:
    """Run a command of ours in this process."""
    printed = io.StringIO()
    with redirect_stdout(printed), redirect_stderr(printed):
        try:
            code = run()
        except SystemExit as error:  # argparse's way to refuse
            code = error.code if isinstance(error.code, int) else 1
    return code, printed.getvalue()


def _parts(words: Sequence[str]) -> list[Sequence[str]]:
    """Return the commands of a pipe; an unknown one is an error."""
    parts: list[Sequence[str]] = [
        list(part) for is_pipe, part in groupby(words, PIPE.__eq__) if not is_pipe
    ]
    for part in parts:
        if part[0] not in PROGRAMS | {"veilcount"}:
            raise Unreadable(f"{' '.join(part)}: an unknown command")
    return parts


def _pipeline(parts: Sequence[Sequence[str]]) -> Done:
    """Run processes, each on what the one before it wrote; return the last one's output."""
    written = b""
    for part in parts:
        done = subprocess.run(
            [*STARTS.get(part[0], part[:1]), *part[1:]],
            input=written,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=os.environ | PYTEST | {"PYTHONPATH": os.pathsep.join(["", *sys.path])},
            check=False,
        )
        written = done.stdout
        if done.returncode:
            break
    return done.returncode, written.decode()


def _install(words: Sequence[str]) -> Done:
    """Return 0 if distributions of a checkout are installed, with extras that they have."""
    unknown = [word for word in words[1:] if not _is_installable(word)]
    return (1, f"nothing installs {unknown}") if unknown else (0, "")


def _is_installable(requirement: str) -> bool:
    parts = _CHECKOUT.fullmatch(requirement)
    if parts is None or parts[1] not in DISTRIBUTIONS:
        return False
    text = (ROOT / parts[1] / "pyproject.toml").read_text(encoding="utf-8")
    extras = set((parts[2] or "").split(",")) - {""}
    return not extras - tomllib.loads(text)["project"]["optional-dependencies"].keys()


def _develop(words: Sequence[str]) -> Done:
    """Return 0 if `./dev` has such a command, which no test runs."""
    name = words[0]
    listed = _DEV.findall(Path(ROOT, "dev").read_text(encoding="utf-8"))
    return (0, "") if name in listed else (1, f"./dev has no {name}: {listed}")


#: what is done here, by its first word
OURS: dict[str, Callable[[Sequence[str]], Done]] = {
    "echo": lambda words: (0, " ".join(words) + "\n"),
    "veilcount": lambda words: _in_process(lambda: run_veilcount(words)),
    "pip": _install,
    "./dev": _develop,
    "sh": lambda words: _pipeline([["sh", str(ROOT / words[0]), *words[1:]]]),
}
