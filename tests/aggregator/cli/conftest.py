"""Fixtures of the commands: a new store, and a way to type a command."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from veilcount_aggregator.cli.main import run

from .store_fixtures import filled, written

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


@pytest.fixture
def file(tmp_path: Path) -> str:
    """Definitions of three collections, under way."""
    return str(written(tmp_path))


@pytest.fixture(scope="session")
def answered(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A store in which 8,000 have answered: 70 % of them dark."""
    folder = tmp_path_factory.mktemp("answered")
    return filled(folder, written(folder))
