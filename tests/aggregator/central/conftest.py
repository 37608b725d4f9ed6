"""A store with true answers, and a curator over it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.aggregator.curator_fixtures import AGE, curator, fill
from veilcount_aggregator.central.curator import Curator
from veilcount_aggregator.store import Store
from veilcount_aggregator.store.acknowledged import ShardHeight


@pytest.fixture(scope="module")
def journals_alone() -> Iterator[None]:
    """Have no host compare heights, which would refuse an older store before any journal does.

    The argument of the journals must hold without them: a power cut may take what a host has kept.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ShardHeight, "loss", lambda _, __: "")
        yield


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    return tmp_path / "releases.jsonl"


@pytest.fixture
def asker(store: Store, journal: Path) -> Curator:
    fill(store, AGE, [3, 2, 1, 0])
    return curator(store, journal)
