"""The distributions as wheels, each installed with what it declares and nothing else."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from zipfile import ZipFile

import pytest

from veilcount_aggregator.operate.deployment_files import FILE_SETS
from veilcount_aggregator.queries.export import ARROW_TYPE, PARQUET_TYPE
from veilcount_shared import installing

from .distributions import ROOT, Environment, build_wheels
from .server import Server
from .test_serving import COUNTED, KNOWN, YESTERDAY, body, collection, send

CLIENT_BYTES = 404_000  # of the wheel that apps ship: languages, kinds, commands, reviews, ASGI, Tk
RECORD = """
import sys
sys.path[:0] = sys.argv[3:]  # the wheel, which is a zip archive
import veilcount_client
from veilcount_client.state.redis_scripts import load_scripts
client = veilcount_client.Client(
    "http://127.0.0.1:9", collections=sys.argv[1], state_dir=sys.argv[2], trust_curator=True,
    threaded=False,
)
client.consent(True)
client.record("autosave", True)
client.flush(timeout=5)
print(veilcount_client.__file__, sum(entry.answers for entry in client.receipt().entries))
print(*load_scripts())
"""
#: the analysis, whose modules numpy alone imports; estimates need scipy
ESTIMATE = """
import importlib, pkgutil, sys
import veilcount_analysis, veilcount_reader
for package in (veilcount_analysis, veilcount_reader):
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        importlib.import_module(module.name)
print({"opendp", "scipy"} & sys.modules.keys())
from veilcount_analysis import estimate, tally
from veilcount_shared import load_collections
question = load_collections(sys.argv[1])["autosave"]
counters = tally(question, [0, 1, 1])
print(counters.tolist())
print(estimate(question, counters).n)
"""
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


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Those of `./dev release`, to be published as they are, or new ones."""
    if release := os.environ.get("RELEASE"):
        return sorted(Path(release).glob("*.whl"))
    return build_wheels(tmp_path_factory.mktemp("wheels"), secrets="deploy/secrets/password")


@pytest.fixture(scope="module")
def definitions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("definitions") / "collections.toml"
    file.write_text(f"{KNOWN}\n{CENTRAL}", encoding="ascii")
    return file


def test_each_wheel_is_built_of_its_sdist_and_has_the_licence(wheels: list[Path]) -> None:
    """The folders of two have none: their sdists take it from above."""
    names = [{Path(name).name for name in ZipFile(wheel).namelist()} for wheel in wheels]

    assert len(wheels) == len(list(wheels[0].parent.glob("*.tar.gz"))) == 3
    assert all({"LICENSE", "NOTICE"} <= members for members in names)


def test_the_files_of_a_deployment_travel_with_the_aggregator_and_no_secrets_do(
    wheels: list[Path],
) -> None:
    """`deploy/` is a link in the package: what an operator made there stays on that machine."""
    place = "veilcount_aggregator/operate/deploy/"
    names = {
        name.removeprefix(place)
        for wheel in wheels
        for name in ZipFile(wheel).namelist()
        if "/deploy/" in name
    }

    assert names == {name for file_set in FILE_SETS.values() for name in file_set.names}


# -- veilcount -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def base(wheels: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Environment:
    return Environment.create(tmp_path_factory.mktemp("base"), wheels, "veilcount")


def test_the_client_needs_requests_alone_and_is_small(
    base: Environment, wheels: list[Path], definitions: Path
) -> None:
    imported = base.run("python", "-c", "import numpy")
    checked = base.run("veilcount", "check", str(definitions))
    refused = base.run("veilcount", "serve")

    assert wheels[0].stat().st_size < CLIENT_BYTES
    assert "No module named 'numpy'" in imported.stderr
    assert "autosave: epsilon" in checked.stdout
    assert refused.returncode == 2
    assert f"serve needs the aggregator: {installing.install('aggregator')}" in refused.stderr


def test_sql_and_lua_are_read_from_an_archive_too(
    base: Environment, wheels: list[Path], definitions: Path, tmp_path: Path
) -> None:
    run = base.run("python", "-c", RECORD, str(definitions), str(tmp_path), str(wheels[0]))

    assert run.returncode == 0, run.stderr
    place, answers, *scripts = run.stdout.split()
    assert place.startswith(str(wheels[0]))
    assert answers == "1"
    assert "commit" in scripts


# -- veilcount-analysis ----------------------------------------------------------------------------


def test_the_analysis_tallies_with_numpy_alone_and_names_the_extra_of_figures(
    wheels: list[Path], definitions: Path, tmp_path: Path
) -> None:
    reader = Environment.create(tmp_path, wheels, "veilcount[reader]")
    run = reader.run("python", "-c", ESTIMATE, str(definitions))

    assert run.stdout.splitlines() == ["set()", "[1, 2]"]
    assert installing.install("estimate") in run.stderr


def test_with_its_extra_the_analysis_estimates(
    wheels: list[Path], definitions: Path, tmp_path: Path
) -> None:
    analysis = Environment.create(tmp_path, wheels, "veilcount-analysis[estimate]")
    run = analysis.run("python", "-c", ESTIMATE, str(definitions))

    assert run.stdout.splitlines() == ["set()", "[1, 2]", "3"], run.stderr


# -- veilcount-aggregator --------------------------------------------------------------------------


@dataclass(frozen=True)
class Install:
    """An environment with the aggregator, and a folder to work in."""

    environment: Environment
    folder: Path

    @property
    def store(self) -> str:
        return f"sqlite:///{self.folder}/store.db"

    def veilcount(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        run = self.environment.run
        return run("veilcount", *arguments, cwd=self.folder, VEILCOUNT_STORE=self.store)


@pytest.fixture(scope="module")
def install(
    wheels: list[Path], definitions: Path, tmp_path_factory: pytest.TempPathFactory
) -> Install:
    folder = tmp_path_factory.mktemp("aggregator")
    environment = Environment.create(folder / "venv", wheels, "veilcount[aggregator]")
    return Install(environment, folder)


@pytest.fixture(scope="module")
def admin_key(install: Install, definitions: Path) -> str:
    created = install.veilcount("init")
    assert install.veilcount("collections", "push", str(definitions)).returncode == 0
    return created.stdout.split()[-1]


@pytest.fixture(scope="module")
def server(install: Install, admin_key: str) -> Iterator[Server]:
    environment = install.environment
    with Server(
        install.store, install.folder, environ=environment.environ, program=("veilcount",),
        python=environment.python,
    ) as it:  # fmt: skip
        yield it


def test_it_has_a_command_of_its_own(install: Install) -> None:
    """So `uvx veilcount-aggregator dev` finds it."""
    own, shared = (
        install.environment.run(program, "dev", "--help")
        for program in ("veilcount-aggregator", "veilcount")
    )

    assert own.returncode == 0
    assert own.stdout == shared.stdout


def test_it_writes_the_files_of_a_deployment(install: Install) -> None:
    run = install.veilcount("deploy", "compose", "--json")
    file = install.folder / "deploy" / "compose.yml"

    assert run.returncode == 0, run.stderr
    assert file.read_bytes() == (ROOT / "deploy" / "compose.yml").read_bytes()


def test_it_counts_and_estimates(install: Install, server: Server, admin_key: str) -> None:
    sent = send(server.url, body(collection()))
    printed = install.veilcount("estimate", "autosave", "--json")

    assert sent.json()["verdicts"] == COUNTED
    assert json.loads(printed.stdout)["series"][0]["ranges"][0]["n"] == 1


@pytest.mark.parametrize("dry_run", [True, False])
def test_no_release_without_the_extra(server: Server, admin_key: str, *, dry_run: bool) -> None:
    wanted = {"query": "histogram", "epsilon": "0.5", "dry_run": dry_run}
    days = {"from": str(OVER), "to": str(OVER)}
    path, headers = "/v1/collections/curated/releases", {"Authorization": f"Bearer {admin_key}"}
    refused = server.ask("POST", path, json=wanted | days, headers=headers)
    after = server.ask("GET", path, headers=headers)

    assert refused.status_code == 501, refused.text
    assert installing.install("central") in refused.json()["detail"]
    assert {each["spent"] for each in after.json()["series"][0]["periods"]} == {"0"}


@pytest.mark.parametrize("kind", [ARROW_TYPE, PARQUET_TYPE])
def test_a_table_that_needs_the_extra_names_it(server: Server, admin_key: str, kind: str) -> None:
    headers = {"Authorization": f"Bearer {admin_key}", "Accept": kind}
    refused = server.ask("GET", "/v1/collections/autosave/estimate", headers=headers)

    assert refused.status_code == 406
    assert installing.install("arrow") in refused.json()["detail"]


def test_the_demo_names_the_extra_at_once(install: Install) -> None:
    run = install.veilcount("demo", "--once")

    assert run.returncode == 2
    assert installing.install("central") in run.stderr
    assert len(run.stderr.splitlines()) == 1
