"""Two builds of this very code take over from each other: store, client state and issuer."""

from __future__ import annotations

import subprocess
import sysconfig
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from shutil import copy

import pytest

from veilcount_aggregator.operate.cli.main import run
from veilcount_aggregator.store import open_store

from ..distributions import VERSION, build_wheels
from ..faults.campaign import Campaign
from ..faults.honest_devices import Population
from ..faults.store_verification import bits_of, spent
from .operator_host import AGGREGATOR, Drill, Host
from .recording_device import PERSONS
from .test_issuer_drills import Accounts, issuing
from .test_key_drills import send_more

OLD, NEW = VERSION, "0.1.1.dev0"
TITLE = "Upgrade, and go back"
DEVICE = Path(__file__).with_name("recording_device.py")


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheels")
    for version in (OLD, NEW):
        for wheel in build_wheels(tmp_path_factory.mktemp("wheels"), version):
            copy(wheel, folder)
    return folder


def install(host: Host, wheels: Path) -> None:
    """Make the environment of a host, with the old version in it, and have the service run there.

    What veilcount depends on is that of this process; pip installs ours alone, from a folder.
    """
    place = host.path("/opt/veilcount")
    subprocess.run(["python3", "-m", "venv", "--without-pip", str(place)], check=True)
    (packages,) = place.glob("lib/python*/site-packages")
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    python = place / "bin" / "python"
    pip = place / "bin" / "pip"
    pip.write_text(f'#!/bin/sh\nexec {python} -m pip "$@"\n')
    pip.chmod(0o700)
    host.write_settings(PIP_NO_INDEX="1", PIP_NO_COMPILE="1", PIP_FIND_LINKS=str(wheels))
    ours = " ".join(f"veilcount{part}=={OLD}" for part in ("", "-analysis", "-aggregator"))
    host.run(f"/opt/veilcount/bin/pip install --quiet --no-deps --ignore-installed {ours}")
    host.names |= {"OLD_VERSION": OLD, "NEW_VERSION": NEW, "SERVICE": host.unit}
    host.service.python, host.service.packages = python, ""


@contextmanager
def upgrading_issuer(folder: Path, wheels: Path) -> Iterator[tuple[Accounts, Drill]]:
    """Yield accounts that an issuer issues to, and its drill; none gets a second token by it."""
    with issuing(folder) as issuer:
        issuer.service.stop()
        install(issuer, wheels)
        issuer.run("systemctl start SERVICE")
        accounts = Accounts.of(issuer)
        with Drill(TITLE, issuer) as drill, accounts.living():
            yield accounts, drill

        assert accounts.second_tokens() == []
        assert accounts.statuses == {200}


def record(host: Host, campaign: Campaign, day: int) -> int:
    """Have the device answer on a day by the version that is installed; return what was counted."""
    state = host.folder / "state"
    device = f"/opt/veilcount/bin/python {DEVICE} {host.url} {campaign.file} {state} {day}"
    return int(host.run(device))


def go_there_and_back(folder: Path, wheels: Path, *, with_issuer: bool) -> None:
    campaign = Campaign.write(folder)
    flags = ("--collections", str(campaign.file))
    with Host(folder / "aggregator", AGGREGATOR, flags=flags) as host, ExitStack() as stack:
        assert run(["init", "--store", host.store, "--yes"]) == 0
        install(host, wheels)
        host.run("systemctl start SERVICE")
        population = Population.create(campaign, host.service.port, seed=4)
        drills = [stack.enter_context(Drill(TITLE, host))]
        issued: list[Accounts] = []
        if with_issuer:
            place = upgrading_issuer(folder / "issuer", wheels)
            accounts, drill = stack.enter_context(place)
            issued, drills = [accounts], [drill, *drills]
        with population.living():
            delivered = [record(host, campaign, 2)]
            for day in (1, 0):
                for drill in drills:
                    drill.block()
                    drill.block()
                delivered.append(record(host, campaign, day))
                send_more(population)
                for each in issued:
                    each.get_more()
        population.settle(60)
        population.close()
        host.service.stop()
        old, new = (
            host.run(f"{program} estimate theme --json")
            for program in ("/opt/veilcount/bin/veilcount", "veilcount")
        )

    with closing(open_store(host.store)) as store:
        bits = list(spent(store.export_pieces()))
        reports = sum(sum(store.report_counts(each).values()) for each in campaign.series)
    assert population.wrong == []
    assert delivered == [PERSONS] * 3
    assert bits_of(campaign, population.acknowledged) <= set(bits)
    assert reports == len(bits) == len(set(bits)) == len(population.acknowledged) + sum(delivered)
    assert old == new


def test_a_store_and_a_client_go_to_a_new_version_and_back(wheels: Path, tmp_path: Path) -> None:
    go_there_and_back(tmp_path, wheels, with_issuer=False)


@pytest.mark.full
def test_an_issuer_goes_to_a_new_version_and_back_with_them(wheels: Path, tmp_path: Path) -> None:
    go_there_and_back(tmp_path, wheels, with_issuer=True)
