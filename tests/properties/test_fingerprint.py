"""Which changes of a definition begin a new series, and which do not."""

from __future__ import annotations

import pytest

from veilcount_shared.collection import parse_collections
from veilcount_shared.collection.toml import _KEYS

from .definition_harness import (
    CENTRAL,
    EVENTS,
    FULL,
    TWINS,
    definition_file,
    no_values_file,
    parse_definition,
)

RUNNING = FULL.replace('takes = "first"', 'takes = "last"\nheld = "process"')

FEATURES = (
    definition_file('features = {age = [0, 100], hours = [0, 60]}\nmeasure = "moments"') + "\n"
)
QUESTIONS = definition_file('questions = {a = ["x", "y"], b = [1, 2]}\ntables = true') + "\n"
NAMED = (
    definition_file('values = "open"\nmodel = "central"\ndelta = 1e-6\nnoise = "laplace"') + "\n"
)
TREND = definition_file('boolean = true\nmeasure = "trend"\nchanges = 1') + "\n"
SHUFFLED = (
    definition_file(
        'boolean = true\nmodel = "shuffled"\npresence = "public"\n'
        "batch = {epsilon = 0.5, delta = 1e-6, covers = 200}"
    )
    + "\n"
)
TOKENS = FULL.replace('"collection"', '"token"') + f'tokens = "{"a" * 64}"\n'
RAKED = FULL + 'margins = {arm = [40, 60], source = "Microcensus", as_of = 2026-01-01}\n'
LABELLED = definition_file('values = ["a", "b"]\nlabels = {de = ["eins", "zwei"]}') + "\n"
ONE_BIT = definition_file('values = ["a", "b", "c", "d"]\nchoose = "several"') + "\n"
OPEN = definition_file('values = "open"\ndiscover = false') + "\n"


BATCHED = definition_file("boolean = true\nbatch = {}") + "\n"
_LARGE = "allow_large_epsilon = true"
CHANGES = [
    (FULL, "app", '"acme2"'),
    (FULL, "values", '["a", "b", "d"]'),
    (FULL, "values", '["b", "a", "c"]'),
    (FULL, "question", '"What now?"'),
    (FULL, "question", '{en = "What is it?"}'),
    (FULL, "purpose", '"for fun"'),
    (LABELLED, "labels", '{de = ["x", "y"]}'),
    (FULL, "other", None),
    (FULL, "cross", '{plan = ["paid", "free"]}'),
    (FULL, "cross", None),
    (FULL, "epsilon", "1.000001"),
    (FULL, "unit", '"month"'),
    (FULL.replace('"week"', '"day"'), "takes", '"last"'),
    (RUNNING, "held", '"device"'),
    (FULL, "from", "2026-12-02"),
    (FULL, "until", "2027-12-02"),
    (FULL, "answers", "11"),
    (FULL, "answers", None),
    (FULL, "late", "31"),
    (FULL, "linkage", '"period"'),
    (FULL.replace('segments = {arm = ["A", "B"]}\n', ""), "presence", '"hidden"'),
    (FULL, "segments", '{arm = ["B", "A"]}'),
    (FULL, "segments", None),
    (FULL, "cohort", '{draw = "spring", of = 3, number = 1}'),
    (FULL, "cohort", '{draw = "autumn", of = 3, number = 0}'),
    (FULL, "cohort", None),
    (EVENTS, "range", "[0, 241]"),
    (EVENTS, "measure", '"distribution"'),
    (EVENTS, "per_day", "3"),
    (ONE_BIT, "choose", None),
    (ONE_BIT + "most = 2\n", "most", "3"),
    (ONE_BIT + "most = 2\n", "most", None),
    (OPEN, "discover", "true"),
    (TREND, "changes", "3"),
    (definition_file('boolean = true\ntakes = "first"'), "takes", '"returning"'),
    (FEATURES, "features", "{age = [0, 100], hours = [0, 61]}"),
    (QUESTIONS, "questions", '{a = ["x", "y"], b = [2, 1]}'),
    (CENTRAL, "budget", "2"),
    (CENTRAL, "adjacency", '"substitute"'),
    (CENTRAL, "boolean", None),
    (CENTRAL, "model", None),
    (CENTRAL + "delta = 0.000001\n", "delta", "0.00001"),
    (CENTRAL + "delta = 0.000001\n", "delta", None),
    (NAMED, "noise", None),
    (BATCHED, "batch", "{least = 51}"),
    (BATCHED, "batch", None),
    *(
        (SHUFFLED, "batch", f"{{epsilon = {e}, delta = {d}, covers = {m}{more}}}")
        for e, d, m, more in (
            ("0.6", "1e-6", 200, ""),
            ("0.5", "1e-7", 200, ""),
            ("0.5", "1e-6", 201, ""),
            *(("0.5", "1e-6", 200, f", {each}") for each in ("least = 999", "grace = 13")),
            *(("0.5", "1e-6", 200, f", {each}") for each in ("honest = 9", _LARGE)),
        )
    ),
    (TOKENS, "tokens", f'"{"b" * 64}"'),
]


SAME = [
    (
        SHUFFLED,
        "batch",
        "{covers = 200, delta = 0.000001, epsilon = 5e-1, least = 1000, grace = 14}",
    ),
    (SHUFFLED, "batch", "{epsilon = 0.5, delta = 1e-6, covers = 200, allow_large_epsilon = false}"),
    (FULL, "owner", '"Bob"'),
    (FULL, "replaces", '"older"'),
    (EVENTS + 'measured_in = "hours"\n', "measured_in", '"minutes"'),
    (RAKED, "margins", '{arm = [0.3, 0.7], source = "Census", as_of = 2025-12-31}'),
    (RAKED, "margins", None),
    (FULL, "epsilon", "10e-1"),
    (FULL, "takes", None),
    (RUNNING.replace('"week"', '"day"'), "held", None),
    (FULL, "late", None),
    (FULL, "linkage", None),
    (FULL, "presence", None),
    (FULL, "model", None),
    (EVENTS, "range", "[0.0, 240.00]"),
    (CENTRAL, "adjacency", None),
]


def fingerprint(text: str) -> str:
    """Return the fingerprint of the collection [q]."""
    return parse_collections(text, no_values_file)["q"].fingerprint


def changed(text: str, key: str, value: str | None) -> str:
    """Return a file with another value of one key, or without it."""
    lines = [line for line in text.splitlines() if not line.startswith(f"{key} = ")]
    assert len(lines) == len(text.splitlines()) - 1
    if key == "app":
        return f"app = {value}\n" + "\n".join(lines)
    if key == "model" and value is None:  # local: the other figure, and no adjacency
        return "\n".join(lines).replace("budget", "epsilon").replace('adjacency = "add-remove"', "")
    if key == "boolean" and value is None:
        lines.append('values = ["False", "True"]')
    return "\n".join([*lines, f"{key} = {value}" if value else ""])


@pytest.mark.parametrize(("text", "key", "value"), CHANGES)
def test_a_change_that_affects_privacy_or_decoding_is_another_series(
    text: str, key: str, value: str | None
) -> None:
    assert fingerprint(text) != fingerprint(changed(text, key, value))


@pytest.mark.parametrize(("text", "key", "value"), SAME)
def test_a_change_of_words_only_is_the_same_series(text: str, key: str, value: str | None) -> None:
    assert fingerprint(text) == fingerprint(changed(text, key, value))


def test_the_tests_above_change_every_key_there_is() -> None:
    """So a new key cannot be forgotten here: values_file and twin have tests of their own.

    Of `tables` there is one value.
    """
    tested = {key for _, key, _ in [*CHANGES, *SAME]} | {"values_file", "twin", "tables"}
    assert {*_KEYS, "app"} == tested


def test_its_name_and_its_twin_are_in_the_fingerprint() -> None:
    """The central series with a twin asks other persons than the one without."""
    renamed = parse_collections(FULL.replace("[q]", "[p]"), no_values_file)["p"]
    alone = parse_collections('app = "acme"\n' + TWINS["far"], no_values_file)
    paired = parse_collections('app = "acme"\n' + TWINS["near"] + TWINS["far"], no_values_file)

    assert fingerprint(FULL) != renamed.fingerprint
    assert alone["far"].fingerprint != paired["far"].fingerprint


@pytest.mark.parametrize("text", [FULL, EVENTS, CENTRAL])
def test_the_order_of_the_keys_does_not_count(text: str) -> None:
    head, lines = text.splitlines()[1:3], text.splitlines()[3:]

    assert fingerprint(text) == fingerprint("\n".join([*head, *reversed(lines)]))


BOOLEAN = definition_file("boolean = true") + "\n"
SEGMENTS = 'segments = {arm = ["A", "B"], major = [1, 2]}'
CROSS = 'cross = {plan = ["free", "paid"], tier = [1, 2]}'


@pytest.mark.parametrize(
    ("lines", "same"),
    [
        (SEGMENTS, 'segments = {major = [1, 2], arm = ["A", "B"]}'),
        (SEGMENTS, '[q.segments]\nmajor = [1, 2]\narm = ["A", "B"]'),
        (CROSS, 'cross = {tier = [1, 2], plan = ["free", "paid"]}'),
        (CROSS, 'cross.tier = [1, 2]\ncross.plan = ["free", "paid"]'),
        ('cohort = {draw = "d", of = 3, number = 0}', 'cohort = {number = 0, of = 3, draw = "d"}'),
        ("", "answers = 12"),  # of 12 months
        ("", "per_day = 1"),
    ],
)
def test_two_ways_to_write_the_same_are_one_series(lines: str, same: str) -> None:
    assert fingerprint(BOOLEAN + lines) == fingerprint(BOOLEAN + same)


def test_labels_that_look_alike_are_different_series() -> None:
    values = ("[1, 2]", "[2, 1]", '["1", "2"]', '["1,2", "3"]', '["1", "2", "3"]', '["1", "2,3"]')
    prints = {parse_definition(f"values = {value}").fingerprint for value in values}

    assert len(prints) == len(values)
