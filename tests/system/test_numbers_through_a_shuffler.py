"""Numbers, features and parts of the answers over real bytes: sealed, shuffled, opened, estimated.

Seeded: what is asserted of an interval holds for this population.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from veilcount_aggregator.queries import Snapshot

from ..aggregator.web.api.deployment_fixtures import Deployment
from ..client.device_fixtures import definitions_text
from .test_through_a_shuffler import batches, figures_of

N, COVERS = 300, 142
FILE = definitions_text(
    "acme-editor",
    {
        "model": "shuffled",
        "presence": "public",
        "epsilon": 4,
        "batch": {"epsilon": 1, "delta": 1e-6, "least": 100, "covers": COVERS, "grace": 3},
        "until": "2027-01-01",
    },
    hours={"range": [0, 24], "measure": "mean"},
    habits={"features": {"files": [0, 100], "hours": [0, 24]}, "measure": "moments"},
    theme={"values": ["light", "dark", "system"], "linkage": "none", "presence": "hidden"},
)
HOURS = [1] * 220 + [20] * 80  # mean 6.07; the middle of the range, where covers are, is 12
HABITS = [{"files": 10, "hours": 2}] * 200 + [{"files": 90, "hours": 23}] * 100
THEMES = ["light"] * 180 + ["dark"] * 60 + [None] * 60


@pytest.fixture(scope="module")
def handed_over(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    answers: dict[str, list[Any]] = {"hours": HOURS, "habits": HABITS, "theme": THEMES}
    with batches(tmp_path_factory.mktemp("numbers"), FILE, answers) as deployed:
        yield deployed


def test_the_mean_is_of_the_persons_alone(handed_over: Deployment) -> None:
    result, notes = figures_of(handed_over, "hours")
    (mean,) = result["figures"]

    assert (result["n"], result["covers"]) == (N, COVERS)
    assert mean["low"] <= sum(HOURS) / N <= mean["high"]
    assert notes == [f"n is exact: {COVERS} cover reports were subtracted"]


def test_moments_are_of_the_persons_alone(handed_over: Deployment) -> None:
    result, _ = figures_of(handed_over, "habits")
    rows = {(row["kind"], row["of"]): row for row in result["figures"]}
    files, correlation = rows["mean", "files"], rows["correlation", "files, hours"]

    assert result["n"] == N
    assert files["low"] <= 110 / 3 <= files["high"]
    assert correlation["low"] > 0.3, "their numbers rise together"


def test_groups_and_the_answered_are_of_the_persons_alone(handed_over: Deployment) -> None:
    together, _ = figures_of(handed_over, "theme", "&group=bright:light,system")
    answered, _ = figures_of(handed_over, "theme", "&among=answered")
    (bright,) = together["figures"]
    light = answered["figures"][0]

    assert bright["low"] <= 180 / N <= bright["high"]
    assert light["low"] <= 180 / 240 <= light["high"]


def test_covers_that_are_kept_in_are_noticed(
    handed_over: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Planted: the covers of a batch are taken for persons."""
    monkeypatch.setattr(Snapshot, "covers", lambda *_: 0)
    result, notes = figures_of(handed_over, "hours")
    (mean,) = result["figures"]

    assert (result["n"], notes) == (N + COVERS, [])
    assert not mean["low"] <= sum(HOURS) / N <= mean["high"]
