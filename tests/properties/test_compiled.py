"""Compiled definitions: what another client loads, and ours reads back and compares."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from veilcount_shared import Collection, load_collections, parse_collections
from veilcount_shared.collection.compiled import parse_compiled
from veilcount_shared.compilation import compile_collections
from veilcount_shared.errors import DefinitionError

from ..notice_definitions import COLLECTIONS
from ..vectors.conformance.definitions import filled, parsed
from .definition_harness import TWINS, definition_file, no_values_file
from .test_canonical import TITLES, VECTORS
from .test_translations import SPOKEN


def read(collections: Mapping[str, Collection]) -> list[tuple[object, ...]]:
    """Return what tells collections apart: what is stated or left out may be the same."""
    return [
        (name, loaded.fingerprint, loaded.owner, loaded.replaces, loaded.question)
        for name, loaded in collections.items()
    ]


@pytest.mark.parametrize("vector", VECTORS, ids=TITLES)
def test_a_pinned_definition_is_read_back_as_it_is(vector: dict[str, Any]) -> None:
    file = parsed([filled(vector, line) for line in vector["toml"]])
    again = parse_compiled(compile_collections(file.values()))

    assert read(again) == read(file)


def test_a_file_of_every_kind_is_read_back_as_it_is(tmp_path: Path) -> None:
    twins = parse_collections('app = "acme"\n' + TWINS["near"] + TWINS["far"], no_values_file)
    for collections in (COLLECTIONS, twins):
        (tmp_path / "collections.json").write_text(
            compile_collections(collections.values()), encoding="utf-8"
        )
        assert read(load_collections(tmp_path / "collections.json")) == read(collections)


def test_a_client_elsewhere_derives_nothing() -> None:
    """The fingerprint is the hash of bytes that are there; texts stand by language."""
    spoken = parse_collections(definition_file(SPOKEN), no_values_file)
    document = json.loads(compile_collections(spoken.values()))
    [row] = document["collections"]

    assert hashlib.sha256(row["canonical"].encode()).hexdigest() == row["fingerprint"]
    assert row["question"]["de"] == "Welches Farbschema?"
    assert row["question"][""] == "Which theme?"
    assert row["labels"] == {"de": ["hell", "dunkel", "sonst"]}
    assert row["tables"] == {"bits": 2, "encoding": "input", "label_bits": 2}
    assert row["notice"][0][0] == "Why it is asked"
    assert "{spent} of {life}" in document["receipt"]["spent"]


ROW = json.loads(compile_collections([COLLECTIONS["moments"]]))["collections"][0]


@pytest.mark.parametrize("key", sorted(ROW.keys() - {"notice"}))
def test_whatever_was_changed_is_refused(key: str) -> None:
    """Planted: each value is another; of the sentences a later release may have better ones."""
    document = json.loads(compile_collections([COLLECTIONS["moments"]]))
    [row] = document["collections"]
    row[key] = [row[key]]

    with pytest.raises(DefinitionError, match=r"collections\.json"):
        parse_compiled(json.dumps(document), "collections.json")


@pytest.mark.parametrize(
    ("text", "fix"),
    [
        ("{", "compile again"),
        ("[]", "compile again"),
        ('{"compiled": 2, "collections": []}', "reads format 1"),
        ('{"compiled": 1, "collections": [{}]}', "compile again"),
        ('{"compiled": 1, "collections": [{"name": "q", "canonical": "[]"}]}', "compile again"),
        ("[" * 100_000, "compile again"),
    ],
)
def test_what_is_no_compiled_file_is_refused(text: str, fix: str) -> None:
    with pytest.raises(DefinitionError) as refused:
        parse_compiled(text, "collections.json")

    assert fix in refused.value.fix


def test_a_server_takes_the_file_that_people_write() -> None:
    with pytest.raises(DefinitionError, match="give the TOML file"):
        parse_collections(compile_collections(COLLECTIONS.values()), no_values_file)
