"""The default install: the wheel, without the packages of the extras."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from zipfile import ZipFile

import pytest

from veilcount_aggregator.queries.export import ARROW_TYPE, PARQUET_TYPE

from .server import Server
from .test_serving import COUNTED, KNOWN, YESTERDAY, body, collection, send
from .wheel import build_wheel

#: run at the start of each process: what the extras would install is not there
BLOCK = 'import sys; sys.modules |= dict.fromkeys(("narwhals", "opendp", "pyarrow"))'
OVER = YESTERDAY - timedelta(days=60)  # a day that takes no reports any more
CENTRAL = f"""
[curated]
question = "Is autosave on?"
boolean = true
model = "central"
budget = 1
unit = "day"
from = {OVER}
until = {YESTERDAY}
"""


@dataclass(frozen=True)
class Install:
    """An unpacked wheel, and a folder to work in."""

    packages: Path
    folder: Path

    @property
    def store(self) -> str:
        return f"sqlite:///{self.folder}/store.db"

    @property
    def environ(self) -> dict[str, str]:
        return {"PYTHONPATH": str(self.packages), "VEILCOUNT_STORE": self.store}

    def veilcount(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "veilcount", *arguments],
            capture_output=True,
            text=True,
            check=False,
            cwd=self.folder,
            env=os.environ | self.environ,
        )


@pytest.fixture(scope="module")
def install(tmp_path_factory: pytest.TempPathFactory) -> Install:
    """A wheel of what the Dockerfile copies: that suffices to build it."""
    folder, packages = tmp_path_factory.mktemp("work"), tmp_path_factory.mktemp("packages")
    ZipFile(build_wheel(tmp_path_factory.mktemp("source"))).extractall(packages)
    (packages / "sitecustomize.py").write_text(BLOCK, encoding="ascii")
    (folder / "collections.toml").write_text(f"{KNOWN}\n{CENTRAL}", encoding="ascii")
    return Install(packages, folder)


@pytest.fixture(scope="module")
def admin_key(install: Install) -> str:
    made = install.veilcount("init")
    assert install.veilcount("collections", "push", "collections.toml").returncode == 0
    return made.stdout.split()[-1]


@pytest.fixture(scope="module")
def server(install: Install, admin_key: str) -> Iterator[Server]:
    with Server(
        install.store, install.folder, environ=install.environ, program=("veilcount",)
    ) as it:
        yield it


def test_it_counts_and_estimates(install: Install, server: Server, admin_key: str) -> None:
    sent = send(server.url, body(collection()))
    printed = install.veilcount("estimate", "autosave", "--json")

    assert sent.json() == COUNTED
    assert json.loads(printed.stdout)["series"][0]["time_ranges"][0]["n"] == 1


@pytest.mark.parametrize("dry_run", [True, False])
def test_a_release_names_the_extra_and_is_not_charged(
    server: Server, admin_key: str, *, dry_run: bool
) -> None:
    wanted = {"query": "histogram", "epsilon": "0.5", "dry_run": dry_run}
    days = {"from": str(OVER), "to": str(OVER)}
    path, headers = "/v1/collections/curated/releases", {"Authorization": f"Bearer {admin_key}"}
    refused = server.ask("POST", path, json=wanted | days, headers=headers)
    after = server.ask("GET", path, headers=headers)

    assert refused.status_code == 501, refused.text
    assert "pip install 'veilcount[central]'" in refused.json()["detail"]
    assert {each["spent"] for each in after.json()["series"][0]["periods"]} == {"0"}


@pytest.mark.parametrize("kind", [ARROW_TYPE, PARQUET_TYPE])
def test_a_table_that_needs_the_extra_names_it(server: Server, admin_key: str, kind: str) -> None:
    headers = {"Authorization": f"Bearer {admin_key}", "Accept": kind}
    refused = server.ask("GET", "/v1/collections/autosave/estimate", headers=headers)

    assert refused.status_code == 406
    assert "pip install 'veilcount[arrow]'" in refused.json()["detail"]


def test_the_demo_names_the_extra_at_once(install: Install) -> None:
    run = install.veilcount("demo", "--once")

    assert run.returncode == 2
    assert "pip install 'veilcount[central]'" in run.stderr
    assert len(run.stderr.splitlines()) == 1
