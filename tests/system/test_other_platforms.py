"""Client and command line with everything taken away that Windows and macOS do not have.

Simulated: see tests/other_platform.py. On the real systems, CI runs tests/client.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from veilcount_aggregator.operate.cli.main import COMMANDS

from ..other_platform import PLATFORMS
from .distributions import ROOT
from .server import HOST, Server
from .test_first_minutes import FirstMinutes, minutes
from .test_serving import KNOWN, counted, store

__all__ = ["minutes", "store"]

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
        "open_folder": "[Errno 13] a folder is not opened on this platform",
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
    ("dev", FILE, "--shuffler"),
    ("dev", FILE, "--bind", "unix:/nowhere/dev.sock"),
    ("dev", FILE, "--store", "redis://127.0.0.1:9"),
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


# -- `veilcount dev` on Windows --------------------------------------------------------------------

ON_WINDOWS = (
    *STRICT,
    *("-m", "tests.other_platform", "win32", "veilcount_aggregator", "veilcount_aggregator"),
)
SEND = """
import veilcount_client
client = veilcount_client.Client({url!r}, collections="collections.toml", development=True)
client.consent(True)
client.record("autosave", True)
assert client.flush(timeout=30)
"""


def run_development(minutes: FirstMinutes, *options: str) -> None:
    minutes.environ["PYTHONPATH"] = os.pathsep.join((str(ROOT), *sys.path))
    (minutes.folder / FILE).write_text(KNOWN, encoding="ascii")
    minutes.run("veilcount", "dev", *options, python=ON_WINDOWS)
    minutes.await_line("live view")


def send(minutes: FirstMinutes) -> None:
    command = [sys.executable, "-c", SEND.format(url=minutes.url)]
    subprocess.run(command, cwd=minutes.folder, env=minutes.environ, check=True)
    minutes.await_line("autosave", "counted", "randomized: ")


def test_on_windows_a_development_server_shows_reports_and_reloads(minutes: FirstMinutes) -> None:
    """Ended while a connection is idle, it leaves no file: Windows removes none that is open."""
    run_development(minutes, "--devices", "200")
    minutes.await_line("autosave", "simulated", "200 reports")
    send(minutes)
    minutes.edit("epsilon = 1", "epsilon = 2")
    minutes.await_line("definitions", "new definitions: autosave")
    live = minutes.page("/live", "randomized: ")
    question = minutes.page("/collections/autosave", "201")
    with socket.create_connection((HOST, int(minutes.url.rpartition(":")[2]))):
        code = minutes.stop()

    assert code == 0
    assert ("autosave" in live, "201" in question) == (True, True)
    assert list((minutes.folder / "temporary").iterdir()) == []


def test_on_windows_a_development_store_is_one_process_s_and_is_kept(
    minutes: FirstMinutes,
) -> None:
    run_development(minutes, *STORE)
    send(minutes)
    other = run_commands("win32", minutes.folder, ("dev", FILE, "--bind", f"{HOST}:1", *STORE))
    ((code, _, error),) = other.values()
    ended = minutes.stop()

    assert ended == 0
    assert (code, "another process has the store open" in error) == (3, True)
    assert counted("sqlite:///" + str(minutes.folder / "store.db")) == 1
