"""Client and command line with everything taken away that Windows and macOS do not have.

Simulated: see tests/other_platform.py. On the real systems, CI runs tests/client.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from veilcount_aggregator.operate.cli.main import COMMANDS

from ..other_platform import PLATFORMS
from .distributions import ROOT
from .server import Server
from .test_serving import KNOWN, counted, store

__all__ = ["store"]

NOWHERE = "http://127.0.0.1:9"
STRICT = ("-X", "warn_default_encoding", "-W", "error::EncodingWarning")  # of Windows: no UTF-8
HOMES = {"win32": "local/veilcount/app", "darwin": "home/Library/Application Support/veilcount/app"}
ON_BOTH = {
    "look_at_linux": "[Errno 2] not on this platform: '/proc/self/stat'",
    "guess_encoding": "'encoding' argument not specified",
}
NOTICED = {
    "win32": ON_BOTH
    | {
        "lock": "import of fcntl halted; None in sys.modules",
        "ask_owner": "module 'os' has no attribute 'geteuid'",
        "remove_in_use": "[Errno 13] [WinError 32] in use by a process",
        "rename_over": "[Errno 17] exists",
    },
    "darwin": ON_BOTH,
}


def run(platform: str, folder: Path, step: str, url: str = NOWHERE) -> tuple[Any, str]:
    """Run a step of the app; return what it shows last, and its errors."""
    definitions = folder / "collections.toml"
    state = folder / ("temporary" if step == "develop" else "state")
    definitions.write_text(KNOWN, encoding="ascii")
    app = ("-m", "tests.other_platform", platform, "veilcount_client", "tests.system.portable_app")
    ended = subprocess.run(
        [sys.executable, *STRICT, *app, step, url, definitions, state],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout.splitlines()[-1]), ended.stderr


Arguments = tuple[str, ...]
Result = tuple[int, str, str]  # the exit code, output and errors


@pytest.mark.parametrize("platform", PLATFORMS)
def test_an_app_lives(platform: str, store: str, tmp_path: Path) -> None:
    with Server(store, tmp_path) as server:
        recorded, recorded_log = run(platform, tmp_path, "record", server.url)
        went_on, went_on_log = run(platform, tmp_path, "go_on", server.url)
        was_counted = counted(store)
        developed, _ = run(platform, tmp_path, "develop", server.url)

    assert (recorded, recorded_log) == ([True, True, "", 1, True], "")
    assert (went_on, went_on_log) == ([0, True, 1, True, True, None, True], "")
    assert was_counted == 1
    assert developed == [True, HOMES[platform]]
    assert list((tmp_path / "temporary").iterdir()) == [], "a directory of development stays"


@pytest.mark.parametrize("platform", PLATFORMS)
def test_what_a_platform_does_not_have_is_noticed(platform: str, tmp_path: Path) -> None:
    failures, _ = run(platform, tmp_path, "planted")
    expected = NOTICED[platform]

    assert {name: failures[name][: len(why)] for name, why in expected.items()} == expected


# -- the aggregator's command line -----------------------------------------------------------------

FILE = "collections.toml"
STORE = ("--store", "sqlite:///store.db")
NEEDS = "needs Linux or macOS, and this is win32: run it there"
WITHOUT_STORE = (
    ("--help",),
    *((name, "--help") for name in COMMANDS),
    ("new", "first.toml"),
    ("check", FILE),
    ("notice", FILE),
    ("compile", FILE),
    ("plan", "--epsilon", "1", "--error", "0.02"),
    ("contrast", "--n", "10000", "--epsilon", "1"),
    ("simulate", FILE, "autosave", "--n", "10000", "--seed", "1"),
    ("audit", FILE, "--samples", "4000"),
)
WITH_STORE = (
    ("dev", FILE),
    ("init", *STORE),
    ("serve", *STORE),
    ("estimate", "autosave", *STORE),
    ("keys", "list", *STORE),
    ("relay-keys", "create", "--out", "relay.keys", *STORE),
    ("store", "check", *STORE),
    ("doctor", "--json", *STORE),
    ("issuer", "serve", "--collections", FILE, *STORE),
    ("shuffler", "status", "--store", "folder"),
    ("demo",),
)
ON_MACOS = (("init", *STORE), ("keys", "list", *STORE), ("store", "check", *STORE))


def run_commands(platform: str, folder: Path, *lines: Arguments) -> dict[Arguments, Result]:
    """Run command lines on a platform, in a folder with definitions."""
    (folder / FILE).write_text(KNOWN, encoding="ascii")
    cli = (platform, "veilcount_aggregator", "tests.system.portable_cli")
    path = {"PYTHONPATH": os.pathsep.join((str(ROOT), *sys.path))}
    ended = subprocess.run(
        [sys.executable, "-m", "tests.other_platform", *cli],
        input=json.dumps(lines),
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env=os.environ | path,
    )
    assert ended.returncode == 0, ended.stderr
    return dict(zip(lines, json.loads(ended.stdout.splitlines()[-1]), strict=True))


def test_on_windows_what_opens_no_store_runs_and_the_rest_says_what_it_needs(
    tmp_path: Path,
) -> None:
    results = run_commands("win32", tmp_path, *WITHOUT_STORE, *WITH_STORE)
    failed = {line: results[line] for line in WITHOUT_STORE if results[line][0] != 0}
    silent = {
        line: results[line]
        for line in WITH_STORE
        if NEEDS not in results[line][1] + results[line][2]
    }
    succeeded = {line for line in WITH_STORE if results[line][0] == 0}

    assert (failed, silent, succeeded) == ({}, {}, set())
    assert {path.name for path in tmp_path.iterdir()} == {FILE, "first.toml"}


def test_on_macos_a_store_is_made_and_read(tmp_path: Path) -> None:
    """Whose fsync(2) alone would lose it: the disk is asked to write its own cache."""
    results = run_commands("darwin", tmp_path, *WITHOUT_STORE, *ON_MACOS)

    assert {line: result for line, result in results.items() if result[0] != 0} == {}
