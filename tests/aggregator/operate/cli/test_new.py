"""`veilcount new`, typed for real."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from veilcount_aggregator.operate.cli import options
from veilcount_shared import load_collections
from veilcount_shared.schedule import period_at

from .conftest import Type

LEAP_DAY = datetime(2028, 2, 29, 23, 59, tzinfo=UTC)


@pytest.mark.parametrize("now", [datetime.now(UTC), LEAP_DAY])
def test_a_new_file_accepts_answers_at_once_and_draws_no_remark(
    typed: Type, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, now: datetime
) -> None:
    monkeypatch.setattr(options, "now", lambda: now)
    monkeypatch.chdir(tmp_path)
    written = typed("new", "--json")
    collections = load_collections("collections.toml").values()

    assert written.json["file"] == "collections.toml"
    assert [period_at(collection, now) for collection in collections] == [0]
    assert typed("check", "collections.toml", "--strict").code == 0


def test_an_existing_file_is_left_unchanged(typed: Type, definitions: Path) -> None:
    before = definitions.read_bytes()
    refused = typed("new", str(definitions))

    assert refused.code == 2
    assert refused.err == f'veilcount: FILE = "{definitions}": it exists: give another name\n'
    assert definitions.read_bytes() == before
