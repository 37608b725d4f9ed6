"""What the analyst's commands look like: narrow terminals, no colours, pipes."""

from __future__ import annotations

import os
import pty
import re
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest

from veilcount_aggregator.operate.cli import output
from veilcount_aggregator.operate.cli.main import run

from .conftest import Type

COLOR = re.compile(r"\x1b\[[0-9;]*m")
COMMANDS = (
    ("check", "FILE"),
    ("plan", "--devices", "20000", "--epsilon", "1"),
    ("contrast", "FILE", "theme", "--n", "1000"),
    ("simulate", "FILE", "theme", "--n", "1000"),
    ("audit", "FILE", "theme", "--samples", "5000"),
    ("notice", "FILE"),
)


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., str]]:
    """A function that runs a command at a terminal, and returns all that it shows."""
    mine, its = pty.openpty()
    shown = bytearray()

    def read() -> None:
        with suppress(OSError):  # Linux: the other end is closed
            while piece := os.read(mine, 1 << 16):
                shown.extend(piece)

    def type_it(*words: str) -> str:
        with os.fdopen(its, "w", encoding="utf-8") as terminal:
            monkeypatch.setattr(sys, "stdout", terminal)
            monkeypatch.setattr(sys, "stderr", terminal)
            reader = threading.Thread(target=read)
            reader.start()
            code = run(words)
        reader.join(10)

        assert code == 0
        return shown.decode().replace("\r\n", "\n")

    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setattr(output, "SPINNER_DELAY", 3600.0)  # on a slow machine too
    yield type_it
    os.close(mine)


Screen = Callable[..., str]


@pytest.mark.parametrize("words", COMMANDS[:3], ids=lambda words: words[0])
def test_everything_fits_a_narrow_terminal(
    screen: Screen, words: tuple[str, ...], file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    shown = screen(*[file if word == "FILE" else word for word in words])

    assert "\u2026" not in shown
    assert "\x1b[1m" in shown
    assert max(map(len, COLOR.sub("", shown).splitlines())) <= 60


def test_a_notice_is_wrapped_for_a_person_only(
    screen: Screen, typed: Type, file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    piped = typed("notice", file).out
    monkeypatch.setenv("COLUMNS", "60")
    shown = screen("notice", file)

    assert max(map(len, COLOR.sub("", shown).splitlines())) <= 60
    assert shown.split() == piped.split()


def test_a_key_is_never_broken(screen: Screen, store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    shown = screen("keys", "create", "--role", "analyst", "--store", store)
    lines = shown.splitlines()

    assert re.fullmatch(r" *veilcount_analyst_[\w-]{43}", lines[-1])


def test_no_color_means_no_colours(
    screen: Screen, file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    shown = screen("check", file)

    assert set(COLOR.findall(shown)) <= {"\x1b[0m", "\x1b[1m"}


def test_a_long_computation_shows_a_spinner_at_a_terminal(
    screen: Screen, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(output, "SPINNER_DELAY", 0.0)
    shown = screen("plan", "--devices", "20000", "--epsilon", "1")

    assert "planning" in shown


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: words[0])
def test_a_pipe_gets_whole_lines_and_no_escapes(
    typed: Type, words: tuple[str, ...], file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    piped = typed(*[file if word == "FILE" else word for word in words])

    assert piped.code == 0
    assert "\x1b" not in piped.out
    assert "\u2026" not in piped.out
    assert piped.err == ""
