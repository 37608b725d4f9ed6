"""What every command does alike: exit codes, one line on stderr, and help."""

from __future__ import annotations

import os
import signal
import sys
import threading
from importlib import import_module
from pathlib import Path

import click
import pytest

from veilcount_aggregator.operate.cli.main import COMMANDS, veilcount

from .conftest import Type


def leaves(command: click.Command, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    if isinstance(command, click.Group):
        below = command.commands.items()
        return [leaf for name, each in below for leaf in leaves(each, (*path, name))]
    return [path]


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_explains_itself_and_speaks_json(typed: Type, name: str) -> None:
    command = veilcount.get_command(click.Context(veilcount), name)
    assert command is not None
    for path in leaves(command, (name,)):
        printed = typed(*path, "--help")

        assert printed.code == 0, path
        assert f"veilcount {' '.join(path)} " in printed.out
        assert "--json" in printed.out, path


def test_nothing_typed_is_answered_with_the_commands(typed: Type) -> None:
    printed = typed()

    assert printed.code == 2
    assert all(name in printed.err for name in COMMANDS)
    assert not any(line.endswith("...") for line in printed.err.splitlines()[1:])
    assert typed("--version").out.strip().count(".") == 2


def test_ctrl_c_is_130_and_one_line(typed: Type, definitions: Path) -> None:
    import_module("veilcount_aggregator.operate.cli.audit")
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    struck = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    try:
        struck.start()
        stopped = typed("audit", str(definitions), "--samples", "10000000")
    finally:
        struck.join()
        signal.signal(signal.SIGINT, before)

    assert stopped.code == 130
    assert stopped.err.lstrip() == "veilcount: stopped\n"  # after the line that holds ^C
    assert stopped.out == ""


def test_an_output_that_is_closed_is_no_error_and_a_reader_that_goes_away_is_141(
    typed: Type, definitions: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    assert typed("check", str(definitions)).code == 0
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w", encoding="utf-8") as unheard:
        monkeypatch.setattr(sys, "stdout", unheard)
        ended = typed("check", str(definitions))

    assert ended.code == 141
    assert ended.err == ""
