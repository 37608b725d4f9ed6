"""Apps without the package's data files: a real one, frozen by PyInstaller, and what a packager
that does not know them leaves.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from shutil import copytree, ignore_patterns
from typing import Any

import pytest

from .distributions import ROOT, Environment, build_wheels
from .server import Server
from .test_serving import KNOWN, counted, store

__all__ = ["store"]

APP = """
import json, sys
import veilcount_client
from veilcount_client.diagnostics.doctor import examine
from veilcount_client.state.redis_scripts import load_scripts
url, definitions, state = sys.argv[1:]
client = veilcount_client.Client(url, collections=definitions, state_dir=state)
client.consent(True)
client.record("autosave", True)
shown = {
    "flushed": client.flush(timeout=30),
    "explained": client.explain("autosave").reasons,
    "receipt": client.receipt().problem,
    "found": {each.subject: each.message for each in examine(client.settings) if not each.ok},
}
client.flush()
try:
    shown["scripts"] = sorted(load_scripts())
except Exception as error:
    shown["scripts"] = str(error)
print(json.dumps(shown))
"""
NAMED = (
    "{} is missing from this app: have its packager include the data files of veilcount_client"
    " (PyInstaller: --collect-data veilcount_client)"
)
NOWHERE = "http://127.0.0.1:9"


def run(app: list[str | Path], url: str, folder: Path) -> tuple[dict[str, Any], list[str]]:
    """Run an app in an empty folder; return what it shows, and the lines of its log."""
    definitions = folder / "collections.toml"
    definitions.write_text(KNOWN, encoding="ascii")
    arguments = [*app, url, definitions, folder / "state"]
    path = {"PYTHONPATH": "", "PYTHONPYCACHEPREFIX": ""}
    ended = subprocess.run(
        arguments, capture_output=True, text=True, check=False, cwd=folder, env=os.environ | path
    )
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout), ended.stderr.splitlines()


def fails_loudly(shown: dict[str, Any], log: list[str], file: str) -> bool:
    """Whether an app without a file says so: once at its start, once where it would send."""
    problem = NAMED.format(file)
    return (
        shown["flushed"] is False
        and f"open: {problem}" in shown["explained"]
        and shown["receipt"] == shown["found"]["package"] == problem
        and log.count(f"veilcount, open: {problem}") == 1
        and log.count(f"veilcount, flush: nothing was recorded: {problem}") == 1
    )


def freeze(folder: Path, *left_out: str) -> Path:
    """Freeze the app by PyInstaller's default build, of the wheel without these files."""
    environment = Environment.create(
        folder / "venv", build_wheels(folder / "wheels"), "veilcount", "pyinstaller"
    )
    for name in left_out:
        (environment.packages / name).unlink()
    (folder / "app.py").write_text(APP, encoding="ascii")
    cache = {"PYINSTALLER_CONFIG_DIR": str(folder / "cache")}
    build = ("-m", "PyInstaller", "--log-level", "ERROR", "app.py")
    built = environment.run("python", *build, cwd=folder, **cache)
    assert built.returncode == 0, built.stderr
    return folder / "dist" / "app" / "app"


@pytest.mark.full
def test_the_report_of_a_frozen_app_is_counted(store: str, tmp_path: Path) -> None:
    """By the hook that the wheel brings: PyInstaller leaves out files that nobody names."""
    app = freeze(tmp_path)
    with Server(store, tmp_path) as server:
        shown, log = run([app], server.url, tmp_path)

    assert (shown["flushed"], counted(store)) == (True, 1)
    assert "commit" in shown["scripts"]
    assert not shown["found"].keys() & {"package", "state"}
    assert log == []


@pytest.mark.full
def test_frozen_without_the_hook_an_app_says_so(store: str, tmp_path: Path) -> None:
    app = freeze(tmp_path, "veilcount_client/integrations/pyinstaller/hook-veilcount_client.py")
    with Server(store, tmp_path) as server:
        shown, log = run([app], server.url, tmp_path)

    assert fails_loudly(shown, log, "schema.sql")
    assert shown["scripts"] == NAMED.format("lua")
    assert counted(store) == 0


def test_an_app_packaged_as_modules_alone_says_so(tmp_path: Path) -> None:
    """Whatever the packager."""
    for package in ("client/veilcount_client", "shared/veilcount_shared"):
        target = tmp_path / Path(package).name
        copytree(ROOT / package, target, ignore=ignore_patterns("*.sql", "lua"))
    (tmp_path / "app.py").write_text(APP, encoding="ascii")
    shown, log = run([sys.executable, tmp_path / "app.py"], NOWHERE, tmp_path)

    assert fails_loudly(shown, log, "schema.sql")
    assert shown["scripts"] == NAMED.format("lua")
