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

from tests.properties.definition_harness import no_values_file
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
def test_a_definition_has_the_pinned_fingerprint(vector: dict[str, Any]) -> None:
    assert collection(vector).fingerprint == vector["fingerprint"]


@every_vector
def test_the_pinned_fingerprint_is_the_sha_256_of_the_pinned_form(vector: dict[str, Any]) -> None:
    digest = hashlib.sha256(canonical(vector).encode("utf-8")).hexdigest()

    assert digest == vector["fingerprint"]


def objects(value: object) -> Iterator[dict[str, Any]]:
    """Yield the objects of a JSON value."""
    if isinstance(value, dict):
        yield value
    if isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from objects(part)


@every_vector
def test_the_form_is_json_that_a_reader_anywhere_takes_apart_alike(vector: dict[str, Any]) -> None:
    text = canonical(vector)
    parsed = json.loads(text, parse_float=pytest.fail, parse_constant=pytest.fail)

    assert all(list(each) == sorted(each) for each in objects(parsed))
    assert not re.search(r"\s", re.sub(r'"(\\.|[^"\\])*"', "", text))
    assert json.dumps(parsed, ensure_ascii=False, separators=(",", ":")) == text
    assert all(
        abs(int(number)) < 1 << 53
        for number in re.findall(r"-?\d+", re.sub(r'"(\\.|[^"\\])*"', "", text))
    )


@every_vector
def test_the_form_says_nothing_that_may_be_reworded(vector: dict[str, Any]) -> None:
    parsed = json.loads(canonical(vector))

    assert not {"question", "owner", "purpose", "replaces"} & parsed.keys()
    assert "What is it?" not in canonical(vector)


def test_all_forms_have_the_same_keys() -> None:
    keys = {tuple(json.loads(canonical(vector))) for vector in VECTORS}

    assert len(keys) == 1


def test_the_vectors_meet_every_design_domain_unit_and_choice_of_words() -> None:
    forms = [json.loads(canonical(vector)) for vector in VECTORS]

    def met(key: str) -> set[Any]:
        return {form[key] for form in forms}

    assert {form["mechanism"]["design"] for form in forms} == {
        "subset",
        "plane",
        "mean",
        "distribution",
        "plain",
    }
    assert {form["domain"]["type"] for form in forms} == {"boolean", "choice", "number", "cross"}
    assert met("unit") == {"event", "day", "week", "month", "user"}
    assert met("measure") == {None, "mean", "distribution"}
    assert met("takes") == {"first", "last", "any", "max", "sum"}
    assert met("linkage") == {"collection", "period", "none"}
    assert met("presence") == {"public", "hidden"}
    assert met("model") == {"local", "central"}
    assert met("adjacency") == {None, "add-remove", "substitute"}
    assert len(met("twin")) == 3
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


def test_the_form_of_a_crossed_attribute_is_its_name_and_its_values() -> None:
    forms = [json.loads(canonical(vector))["domain"] for vector in VECTORS]
    attributes = [each for form in forms for each in form.get("attributes", [])]

    assert attributes == [
        ["age", [1, 2, 3]],
        ["plan", ["free", "paid"]],
        ["plan", ["free", "paid"]],
    ]


def test_the_form_of_a_cohort_names_its_draw_their_number_and_its_own() -> None:
    cohorts = [json.loads(canonical(vector))["cohort"] for vector in VECTORS]

    assert [each for each in cohorts if each] == [{"draw": "spring", "of": 3, "number": 2}]


RUNNING = """
app = "acme"
[q]
question = "What is it?"
boolean = true
takes = "last"
epsilon = 1
unit = "day"
from = 2026-12-01
until = 2027-03-01
"""


def test_a_value_that_the_device_holds_is_another_series_and_its_form_says_so() -> None:
    forms = [
        json.loads(canonical_bytes(parse_collections(f"{RUNNING}{held}", no_values_file)["q"]))
        for held in ('held = "device"', "")
    ]

    assert forms[0] == {**forms[1], "held": "device"}


def test_a_value_that_the_process_holds_is_the_series_it_always_was() -> None:
    """To state what a definition means already begins no new series, and asks for no consent."""
    stated = parse_collections(f'{RUNNING}held = "process"', no_values_file)["q"]
    before = parse_collections(RUNNING, no_values_file)["q"]

    assert canonical_bytes(stated) == canonical_bytes(before)
    assert b'"held"' not in canonical_bytes(stated)


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


def test_words_that_do_not_count_leave_the_fingerprint_as_it_was() -> None:
    plain, worded = (
        next(vector for vector in VECTORS if vector["title"].startswith(title))
        for title in ("boolean, monthly", "words that do not count")
    )

    assert plain["fingerprint"] == worded["fingerprint"]
