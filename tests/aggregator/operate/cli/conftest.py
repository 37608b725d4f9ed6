"""Fixtures of the commands: a new store, and a way to type a command."""

from __future__ import annotations

import json
import os
import pty
import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from veilcount_aggregator.operate.cli import development_stores
from veilcount_aggregator.operate.cli.main import run

from ....client.device_fixtures import definitions_text
from ...queries.simulated_reports import counted, send
from ...web.api.deployment_fixtures import deployment

FILE = """
app = "acme-editor"

[theme]
question = "Which theme is active?"
values = ["light", "dark", "system"]
epsilon = 1
unit = "month"
from = 2026-11-01
until = 2027-11-01
"""


@pytest.fixture(autouse=True)
def temporary(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return where commands look for stores of `veilcount dev`: not where this machine's are."""
    folder = tmp_path_factory.mktemp("temporary")
    monkeypatch.setattr(development_stores, "gettempdir", lambda: str(folder))
    return folder


CITIES = 230


@dataclass(frozen=True, slots=True)
class Typed:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Type = Callable[..., Typed]


@pytest.fixture
def typed(capfd: pytest.CaptureFixture[str]) -> Type:
    def type_it(*words: str) -> Typed:
        capfd.readouterr()
        code = run(words)
        return Typed(code, *capfd.readouterr())

    return type_it


def typed_by_hand(typed: Type, monkeypatch: pytest.MonkeyPatch, answer: str, *words: str) -> Typed:
    mine, its = pty.openpty()
    with os.fdopen(its, encoding="utf-8") as terminal:
        os.write(mine, answer.encode())
        monkeypatch.setattr(sys, "stdin", terminal)
        result = typed(*words)
    os.close(mine)
    return result


@pytest.fixture
def store(tmp_path: Path, typed: Type) -> str:
    url = f"sqlite:///{tmp_path}/store.db"
    assert typed("init", "--store", url).code == 0
    return url


@pytest.fixture
def definitions(tmp_path: Path) -> Path:
    file = tmp_path / "collections.toml"
    file.write_text(FILE, encoding="utf-8")
    return file


def written(folder: Path) -> Path:
    """Write definitions of three collections, under way."""
    start = datetime.now(UTC).date() - timedelta(days=10)
    text = definitions_text(
        "acme-editor",
        {"unit": "user", "from": start, "until": start + timedelta(days=60)},
        theme={
            "question": "Which theme is active?",
            "values": ["light", "dark", "system"],
            "segments": {"arm": ["A", "B"]},
            "owner": "privacy@acme.example",
            "purpose": "To choose the default theme.",
        },
        city={"question": "Which city?", "values": [f"city {n}" for n in range(CITIES)]},
        minutes={
            "question": "How long was this session?",
            "range": [0, 240],
            "measure": "mean",
            "epsilon": 0.5,
            "unit": "event",
            "per_day": 4,
            "answers": 7,
        },
        crash={"question": "Did it crash?", "model": "central", "budget": 1, "unit": "month"},
    )
    file = folder / "analyst.toml"
    file.write_text(text, encoding="utf-8")
    return file


@pytest.fixture
def file(tmp_path: Path) -> str:
    return str(written(tmp_path))


@pytest.fixture(scope="session")
def answered(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A store in which 4,000 have answered `theme` in each arm: 70 % of them dark."""
    folder = tmp_path_factory.mktemp("answered")
    text = written(folder).read_text(encoding="utf-8")
    with deployment(folder, text, now=datetime.now(UTC)) as made:
        for arm in (0, 1):
            counted(send(made, "theme", [800, 2800, 400], segment=arm, seed=arm))
        return made.aggregator.settings.store
