"""`veilcount shuffler init` and `load`: what a shuffler serves, checked before it is stored."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from veilcount_shared import Collection, load_collections
from veilcount_shared.oblivious_http.key_file import RelayKey, decode_key_file

from .aggregator_client import check_target
from .errors import ShufflerError
from .promise_check import check_promises
from .store_settings import StoreSettings


@dataclass(frozen=True, slots=True)
class Loaded:
    """What a store serves after a load."""

    added: int
    collections: int
    keys: int


@dataclass(frozen=True, slots=True)
class NewStore:
    """What a store is made with."""

    target: str  # URL of the aggregator
    api_key: str
    name: str  # that people read


def init(
    settings: StoreSettings, new: NewStore, files: Sequence[Path], key_file: Path, today: date
) -> Loaded:
    """Make a store that serves these definitions."""
    check_target(new.target)
    collections, keys = _checked(files, key_file)
    settings.make(new.target, new.api_key, new.name)
    return _add(settings, collections, keys, today)


def load(settings: StoreSettings, files: Sequence[Path], key_file: Path, today: date) -> Loaded:
    """Add definitions and keys; nothing changes for a period that has begun."""
    settings.require()
    collections, keys = _checked(files, key_file)
    return _add(settings, collections, keys, today)


def _checked(files: Sequence[Path], key_file: Path) -> tuple[list[Collection], list[RelayKey]]:
    collections = [
        collection
        for file in files
        for collection in load_collections(file).values()
        if collection.batch is not None
    ]
    if not collections:
        raise ShufflerError("no collection has `batch`: none of them travels by shuffler")
    check_promises(collections)
    return collections, decode_key_file(key_file.read_bytes())


def _add(
    settings: StoreSettings,
    collections: Sequence[Collection],
    keys: Sequence[RelayKey],
    today: date,
) -> Loaded:
    settings.set_keys(keys, today)
    added = settings.add_collections(collections, today)
    return Loaded(added, len(settings.collections()), len(settings.gateway_keys()))
