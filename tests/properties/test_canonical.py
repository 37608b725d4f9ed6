"""What the pinned canonical forms are: JSON of one meaning, of every kind of definition."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from ..vectors.conformance.definitions import filled
from ..vectors.vector_files import read

VECTORS: list[dict[str, Any]] = read("definitions.json")["vectors"]
TITLES = [f"{vector['title']}: {vector['collection']}" for vector in VECTORS]
every_vector = pytest.mark.parametrize("vector", VECTORS, ids=TITLES)


def canonical(vector: dict[str, Any]) -> str:
    """Return the canonical form that the vector states."""
    return filled(vector, vector["canonical"])


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


def test_all_forms_have_the_same_keys_and_a_kind_adds_its_own() -> None:
    """So a new kind changes no other's text; whom to ask, what is replaced, and margins may."""
    forms = [json.loads(canonical(vector)) for vector in VECTORS]
    common = set.intersection(*(set(form) for form in forms))
    own = {
        (form["domain"]["type"], form["measure"]): sorted(form.keys() - common) for form in forms
    }

    assert len(common) == 29
    assert not {"owner", "replaces", "margins", "measured_in"} & common
    assert {kind: keys for kind, keys in own.items() if keys} == {
        ("choice", None): ["labels"],
        ("several", None): ["labels"],
        ("cross", None): ["labels"],
        ("boolean", "trend"): ["changes"],
        ("open", None): ["noise"],
    }


def test_the_vectors_cover_every_mechanism_domain_unit_and_enum_value() -> None:
    forms = [json.loads(canonical(vector)) for vector in VECTORS]

    def values(key: str) -> set[Any]:
        return {form[key] for form in forms}

    designs = {form["mechanism"]["design"] for form in forms}
    assert designs == {
        *("subset", "plane", "mean", "distribution", "hierarchy", "hashed", "moments", "trend"),
        *("pairs", "set", "bit", "plain"),
    }
    assert {form["domain"]["type"] for form in forms} == {
        *("boolean", "choice", "range", "features", "open", "cross", "questions", "several")
    }
    assert values("unit") == {"event", "day", "week", "month", "user"}
    assert values("measure") == {None, "mean", "distribution", "ranges", "moments", "trend"}
    assert values("takes") == {"first", "last", "any", "max", "sum", "returning"}
    assert values("held") == {"process", "device"}
    assert values("linkage") == {"collection", "period", "none", "token"}
    assert values("presence") == {"public", "hidden"}
    assert values("model") == {"local", "shuffled", "central"}
    assert values("adjacency") == {None, "add-remove", "substitute"}
    assert len(values("twin")) == 3
    assert sum(form["cohort"] is not None for form in forms) == 1
    assert sum(form["segments"] != [] for form in forms) == 2
    assert len({vector["fingerprint"] for vector in VECTORS}) == len(VECTORS) - 1
