"""A deployment with a trusted shuffler, whose parts have four reports."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from veilcount_shared.shuffling import part

from ...web.api.deployment_fixtures import deployment
from .batch_fixtures import AFTER_GRACE, FILE, TestShuffler


@pytest.fixture
def shuffler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[TestShuffler]:
    monkeypatch.setattr(part, "PART_REPORTS", 4)
    with deployment(tmp_path, FILE, now=AFTER_GRACE) as deployed:
        yield TestShuffler(deployed)
