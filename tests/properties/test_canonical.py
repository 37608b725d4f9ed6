"""The canonical form is pinned, byte for byte: a definition keeps its fingerprint for ever."""

from __future__ import annotations

import hashlib
import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.properties.definition_harness import no_values_file, parse_definition
from veilcount_shared.collection import Collection, parse_collections
from veilcount_shared.collection.canonical import canonical_bytes
from veilcount_shared.errors import DefinitionError

_FILE = Path(__file__).parents[1] / "vectors" / "definitions.json"
VECTORS: list[dict[str, Any]] = json.loads(_FILE.read_text(encoding="utf-8"))["vectors"]
TITLES = [f"{vector['title']}: {vector['collection']}" for vector in VECTORS]
every_vector = pytest.mark.parametrize("vector", VECTORS, ids=TITLES)


def filled(vector: dict[str, Any], text: str) -> str:
    """Put the list of values where the vector abbreviates it, by the rule the file states."""
    values = [f"value {number}" for number in range(vector.get("values", 0))]
    return text.replace("@values", json.dumps(values, separators=(",", ":")))


def collection(vector: dict[str, Any]) -> Collection:
    """Return the collection that the vector's TOML defines, which an earlier release wrote."""
    text = filled(vector, "\n".join(vector["toml"]))
    return parse_collections(text, no_values_file, legacy=True)[vector["collection"]]


def canonical(vector: dict[str, Any]) -> str:
    """Return the canonical form that the vector states."""
    return filled(vector, vector["canonical"])


@every_vector
def test_a_definition_has_the_pinned_canonical_form(vector: dict[str, Any]) -> None:
    assert canonical_bytes(collection(vector)) == canonical(vector).encode()


@every_vector
def test_the_fingerprint_is_the_sha_256_of_the_pinned_form(vector: dict[str, Any]) -> None:
    digest = hashlib.sha256(canonical(vector).encode("utf-8")).hexdigest()

    assert digest == vector["fingerprint"] == collection(vector).fingerprint


def objects(value: object) -> Iterator[dict[str, Any]]:
    """Yield the objects of a JSON value."""
    if isinstance(value, dict):
        yield value
    if isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from objects(part)


@every_vector
def test_the_form_is_json_that_every_parser_reads_alike(vector: dict[str, Any]) -> None:
    text = canonical(vector)
    parsed = json.loads(text, parse_float=pytest.fail, parse_constant=pytest.fail)

    assert all(list(each) == sorted(each) for each in objects(parsed))
    assert not re.search(r"\s", re.sub(r'"(\\.|[^"\\])*"', "", text))
    assert json.dumps(parsed, ensure_ascii=False, separators=(",", ":")) == text
    assert all(
        abs(int(number)) < 1 << 53
        for number in re.findall(r"-?\d+", re.sub(r'"(\\.|[^"\\])*"', "", text))
    )


def test_the_forms_have_the_same_keys_and_none_that_may_be_reworded() -> None:
    keys = {tuple(json.loads(canonical(vector))) for vector in VECTORS}

    assert len(keys) == 1
    assert not {"question", "owner", "purpose", "replaces"} & set(*keys)
    assert not any("What is it?" in canonical(vector) for vector in VECTORS)


def test_the_vectors_cover_every_mechanism_domain_unit_and_enum_value() -> None:
    forms = [json.loads(canonical(vector)) for vector in VECTORS]

    def values(key: str) -> set[Any]:
        return {form[key] for form in forms}

    assert {form["mechanism"]["design"] for form in forms} == {
        "subset",
        "plane",
        "mean",
        "distribution",
        "plain",
    }
    assert {form["domain"]["type"] for form in forms} == {"boolean", "choice", "number", "cross"}
    assert values("unit") == {"event", "day", "week", "month", "user"}
    assert values("measure") == {None, "mean", "distribution"}
    assert values("takes") == {"first", "last", "any", "max", "sum"}
    assert values("linkage") == {"collection", "period", "none"}
    assert values("presence") == {"public", "hidden"}
    assert values("model") == {"local", "central"}
    assert values("adjacency") == {None, "add-remove", "substitute"}
    assert len(values("twin")) == 3
    assert sum(form["cohort"] is not None for form in forms) == 1
    assert sum(form["segments"] != [] for form in forms) == 1
    assert len({vector["fingerprint"] for vector in VECTORS}) == len(VECTORS) - 1


def test_the_form_names_segments_and_crossed_attributes_in_ascending_order() -> None:
    named = [
        (
            list(tomllib.loads("\n".join(vector["toml"]))["q"][table]),
            [name for name, _ in pairs],
        )
        for vector in VECTORS
        if "values" not in vector
        for form in [json.loads(canonical(vector))]
        for table, pairs in [
            ("segments", form["segments"]),
            ("cross", form["domain"].get("attributes", [])),
        ]
        if len(pairs) > 1
    ]

    assert named == [(["plan", "age"], ["age", "plan"]), (["major", "arm"], ["arm", "major"])]


def test_crossed_attributes_are_pairs_and_a_cohort_is_an_object() -> None:
    forms = [json.loads(canonical(vector)) for vector in VECTORS]
    attributes = [each for form in forms for each in form["domain"].get("attributes", [])]
    plan = ["plan", ["free", "paid"]]

    assert attributes == [["age", [1, 2, 3]], plan, plan]
    assert [form["cohort"] for form in forms if form["cohort"]] == [
        {"draw": "spring", "of": 3, "number": 2}
    ]


RUNNING = 'boolean = true\ntakes = "last"\nunit = "day"\n'


def test_a_value_that_the_device_holds_is_another_series() -> None:
    """It answers another question: of the whole period, not of its first process."""
    device, default = (
        json.loads(canonical_bytes(parse_definition(RUNNING + held)))
        for held in ('held = "device"', "")
    )

    assert device == {**default, "held": "device"}


def test_to_state_that_the_process_holds_a_value_begins_no_new_series() -> None:
    stated = canonical_bytes(parse_definition(RUNNING + 'held = "process"'))

    assert stated == canonical_bytes(parse_definition(RUNNING))
    assert b'"held"' not in stated


def test_the_vectors_need_the_legacy_reading_exactly_where_a_long_unit_has_a_running_value() -> (
    None
):
    refused = []
    for vector in VECTORS:
        try:
            parse_collections(filled(vector, "\n".join(vector["toml"])), no_values_file)
        except DefinitionError as error:
            refused.append((vector["title"], error.key))

    assert refused == [
        ("range, mean, of fractions", "held"),
        ("range, distribution", "held"),
        ("week, some weeks", "held"),
    ]
