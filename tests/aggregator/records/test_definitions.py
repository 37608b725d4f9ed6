"""Definitions: kept word for word, known for ever, closed for good."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from veilcount_aggregator.errors import StoreUnfit
from veilcount_aggregator.records.audit_log import load_audit_log
from veilcount_aggregator.records.definitions import (
    CLOSED,
    SOURCE,
    DefinitionSource,
    add_definitions,
    close_collection,
    load_catalog,
    read_source,
)
from veilcount_aggregator.store import Record, Store
from veilcount_shared import Collection, load_collections
from veilcount_shared.errors import DefinitionError

from ...client.device_fixtures import definitions_text

NOW = datetime(2026, 12, 3, 12, tzinfo=UTC)
FILE = definitions_text(
    theme={"question": "Which theme?", "values": ["light", "dark"]},
    plugin={"values_file": "plugins.txt", "epsilon": 2},
)
PLUGINS = "one\r\ntwo\nthree"
CHANGED = FILE.replace("epsilon = 1", "epsilon = 2")
SENT = DefinitionSource(FILE, {"plugins.txt": PLUGINS})


def push(store: Store, text: str = FILE) -> list[Collection]:
    """Load definitions, as a command does; return those that are new."""
    return add_definitions(store, DefinitionSource(text, SENT.files), NOW, "cli")


def fingerprints(store: Store) -> dict[str, list[str]]:
    return {
        name: [each.fingerprint for each in series]
        for name, series in load_catalog(store).by_name.items()
    }


def test_definitions_are_known_for_ever_the_newest_first(store: Store) -> None:
    new = push(store)
    generation = store.generation()

    assert [each.name for each in new] == ["theme", "plugin"]
    assert fingerprints(store) == {each.name: [each.fingerprint] for each in new}
    assert load_catalog(store).series.keys() == {each.fingerprint for each in new}
    assert (push(store), store.generation()) == ([], generation)

    (changed,) = push(store, CHANGED)
    before = fingerprints(store)

    assert before["theme"] == [changed.fingerprint, new[0].fingerprint]
    owned = CHANGED.replace('question = "Which theme?"', 'question = "Which theme?"\nowner = "Ada"')
    assert push(store, owned) == []
    assert fingerprints(store) == before
    assert load_catalog(store).by_name["theme"][0].collection.owner == "Ada"


def test_a_file_means_the_same_here_and_on_a_device(tmp_path: Path, store: Store) -> None:
    """Value lists with every kind of line end, and marks of byte order."""
    (tmp_path / "plugins.txt").write_bytes(b"\xef\xbb\xbf" + PLUGINS.encode())
    (tmp_path / "c.toml").write_bytes(b"\xef\xbb\xbf" + FILE.encode())
    device = load_collections(tmp_path / "c.toml")
    add_definitions(store, read_source(tmp_path / "c.toml"), NOW, "cli")

    assert fingerprints(store) == {name: [each.fingerprint] for name, each in device.items()}
    assert SENT.collections()["plugin"].fingerprint == device["plugin"].fingerprint


def test_kept_definitions_that_this_version_refuses_are_refused_with_their_fault(
    store: Store,
) -> None:
    """They are not read as an earlier build would have: it had no `held`."""
    text = FILE.replace('unit = "day"', 'unit = "week"\ntakes = "last"')
    store.change_records(store.generation(), [DefinitionSource(text, SENT.files).record(0)])

    with pytest.raises(StoreUnfit, match=r"held = \(missing\).*; run the version that loaded them"):
        load_catalog(store)


@pytest.mark.parametrize(
    "source",
    [
        DefinitionSource(FILE),
        DefinitionSource(FILE, {"other.txt": "a"}),
        DefinitionSource(FILE.replace("plugins.txt", "/etc/passwd"), {"plugins.txt": PLUGINS}),
        DefinitionSource("x = ["),
        DefinitionSource(FILE.replace("epsilon = 1", "epsilon = 99"), {"plugins.txt": PLUGINS}),
    ],
)
def test_a_file_that_cannot_be_used_is_not_kept(store: Store, source: DefinitionSource) -> None:
    """A path on our own disk is nothing that may be asked for."""
    with pytest.raises(DefinitionError):
        add_definitions(store, source, NOW, "cli")

    assert store.records(SOURCE) == {}
    assert load_audit_log(store) == []


@pytest.mark.parametrize("missing", ["c.toml", "plugins.txt"])
def test_a_file_that_is_not_there_is_named(tmp_path: Path, missing: str) -> None:
    (tmp_path / "plugins.txt").write_text(PLUGINS)
    (tmp_path / "c.toml").write_text(FILE)
    (tmp_path / missing).unlink()

    with pytest.raises(DefinitionError, match=missing):
        read_source(tmp_path / "c.toml")


def test_a_collection_is_closed_once_and_for_good_under_all_its_definitions(store: Store) -> None:
    push(store)
    push(store, CHANGED)
    gone = close_collection(store, "theme", NOW, "abcd")
    again = [close_collection(store, name, NOW, "abcd") for name in ("theme", "nothing")]
    acts = [(each.actor, each.action, each.target) for each in load_audit_log(store)]
    push(store, FILE + "\n# again\n")
    push(store, FILE.replace("epsilon = 1", "epsilon = 3"))
    known = load_catalog(store).by_name

    assert [each.closed for each in gone] == [True, True]
    assert again == [[], []]
    assert [each.closed for each in known["theme"]] == [False, True, True]
    assert [each.closed for each in known["plugin"]] == [False]
    assert set(store.records(CLOSED).values()) == {b"2026-12-03"}
    assert acts[-1] == ("abcd", "collections close", "theme")


def test_definitions_that_cannot_be_read_any_more_name_the_way_out(store: Store) -> None:
    source = DefinitionSource("x = [")
    store.change_records(store.generation(), [source.record(0)])

    with pytest.raises(StoreUnfit, match="run the version that loaded them"):
        load_catalog(store)


def test_two_who_push_at_once_both_are_heard(store: Store) -> None:
    other = DefinitionSource(FILE.replace("acme", "other"), SENT.files)
    original = store.change_records

    def beaten(generation: int, records: list[Record]) -> bool:
        store.change_records = original  # type: ignore[method-assign] # once
        add_definitions(store, other, NOW, "other")
        return original(generation, records)

    store.change_records = beaten  # type: ignore[assignment,method-assign] # once
    push(store)

    assert len(store.records(SOURCE)) == 2
    assert [each.actor for each in load_audit_log(store)] == ["other", "cli"]
