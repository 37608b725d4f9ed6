"""What the analyst's commands look like: narrow terminals, no colours, pipes."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest

from .conftest import Type
from .filled import written

ROOT = Path(__file__).parents[3]
COLOUR = re.compile(r"\x1b\[[0-9;]*m")
COMMANDS = (
    ("check", "FILE"),
    ("plan", "--devices", "20000", "--epsilon", "1"),
    ("contrast", "FILE", "theme", "--n", "1000"),
    ("simulate", "FILE", "theme", "--n", "1000"),
    ("audit", "FILE", "theme", "--samples", "5000"),
    ("notice", "FILE"),
)


def environ(**more: str) -> dict[str, str]:
    """Return the variables of a bare terminal."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    return kept | {"PYTHONPATH": "client:aggregator:shared", "TERM": "xterm-256color"} | more


def typed_at_a_terminal(words: list[str], **more: str) -> str:
    """Type a command at a terminal of its own; return all that it shows."""
    mine, its = pty.openpty()
    with os.fdopen(mine, "rb", buffering=0) as screen:
        command = [sys.executable, "-m", "veilcount_aggregator", *words]
        process = subprocess.Popen(
            command, stdin=its, stdout=its, stderr=its, cwd=ROOT, env=environ(**more)
        )
        os.close(its)
        shown = bytearray()
        try:
            while piece := screen.read(1 << 16):
                shown += piece
        except OSError:  # how Linux says that nobody writes any more
            pass
        assert process.wait(60) == 0
    return shown.decode().replace("\r\n", "\n")


def named(words: tuple[str, ...], folder: Path) -> list[str]:
    """Put a file's name where it belongs."""
    return [str(written(folder)) if word == "FILE" else word for word in words]


@pytest.mark.parametrize("words", COMMANDS[:3], ids=lambda words: words[0])
def test_tables_fit_a_narrow_terminal(words: tuple[str, ...], tmp_path: Path) -> None:
    """Cells wrap, and none is cut with dots."""
    shown = typed_at_a_terminal(named(words, tmp_path), COLUMNS="60")

    assert "\u2026" not in shown
    assert "\x1b[1m" in shown


def test_a_notice_is_wrapped_for_a_person_only(tmp_path: Path) -> None:
    file = str(written(tmp_path))
    shown = typed_at_a_terminal(["notice", file], COLUMNS="60")
    piped = subprocess.run(
        [sys.executable, "-m", "veilcount_aggregator", "notice", file],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
        env=environ(),
    ).stdout

    assert max(map(len, COLOUR.sub("", shown).splitlines())) <= 60
    assert shown.split() == piped.split()


def test_no_color_means_no_colours(tmp_path: Path) -> None:
    """Bold headings are no colour."""
    shown = typed_at_a_terminal(named(COMMANDS[0], tmp_path), NO_COLOR="1")

    assert set(COLOUR.findall(shown)) <= {"\x1b[0m", "\x1b[1m"}


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: words[0])
def test_a_pipe_gets_whole_lines_and_no_escapes(
    typed: Type, words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    piped = typed(*named(words, tmp_path))

    assert piped.code == 0
    assert "\x1b" not in piped.out
    assert "\u2026" not in piped.out
    assert piped.err == ""
