"""A store of each engine, and definitions whose keys are made once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from veilcount_aggregator.store import Store, open_store
from veilcount_issuer.key_vault import FolderVault

from ..aggregator.store.conftest import OPERATED, served
from ..aggregator.store.engines import Empty
from .issuer_fixtures import FILE, TODAY, Issuance, set_up


@pytest.fixture(scope="package", params=OPERATED)
def empty(request: pytest.FixtureRequest, memory: Path) -> Iterator[Empty]:
    with served(request.param, memory) as serving:
        yield serving


@pytest.fixture
def store_url(empty: Empty) -> str:
    return empty()


@pytest.fixture
def store(store_url: str) -> Iterator[Store]:
    with closing(open_store(store_url, make=True)) as opened:
        yield opened


@pytest.fixture(scope="session")
def definitions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The definitions, with their public keys beside them and the private ones in `keys`."""
    folder = tmp_path_factory.mktemp("issuer")
    (folder / "collections.toml").write_text(FILE)
    set_up(folder / "collections.toml", FolderVault(folder / "keys", make=True), TODAY)
    return folder / "collections.toml"


@pytest.fixture
def issuance(
    definitions: Path, store: Store, store_url: str, monkeypatch: pytest.MonkeyPatch
) -> Issuance:
    issuance = Issuance.begun(definitions, store, store_url)
    monkeypatch.setattr(store, "server_times", lambda: [issuance.now])
    return issuance
