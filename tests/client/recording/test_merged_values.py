"""How values of any type merge, and that one stored on the device is what it was in memory."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal
from enum import IntEnum, StrEnum
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

from veilcount_client.recording import held_values
from veilcount_client.recording.held_values import canonical, decode, encode, merge
from veilcount_client.testing import SeededRandomSource
from veilcount_shared.collection import Takes

from ..device_fixtures import RaisingValue, one_collection


class Word(StrEnum):
    PLAIN = "a"


class Count(IntEnum):
    THREE = 3


class Number:
    def __float__(self) -> float:
        return 7.5


NUMBERS: tuple[object, ...] = (
    *(True, 0, 3, -5, 10**5000, -(10**5000), 7.5, -0.0, 1e308, 5e-324, math.inf, -math.inf),
    *(math.nan, Fraction(7, 3), Fraction(1, 10**400), Decimal("7.3"), Decimal("NaN")),
    *(Decimal("Infinity"), np.float64(7.5), np.float32(7.1), np.int64(5), np.bool_(True)),
    *(np.float64("nan"), Count.THREE, Number()),
)
OBJECTS: tuple[object, ...] = (
    *(None, "a", "b", "é", "\ud800", "x" * 200, "x" * 100_000, b"a", Word.PLAIN, ("a", "p")),
    *(["a", "p"], ("a", Word.PLAIN), (1,), {}, object(), RaisingValue(), "7", "nan"),
    *("e\u0301" * 200, "e\u0301" * 201, " " * 300 + "a", "\u200c" * 200),
    *(("a", object()), [["a"]], ["b", b"b", "p"], {"a", "p"}, frozenset({1, "é"}), {"a", b"a", ()}),
    *(
        {"a": "p", "c": 7.5},
        {"a": "q"},
        {"a": RaisingValue(), 3: "p", "c": "p"},
        ["b"] * 300 + ["a"],
    ),
)
#: of these kinds a value has parts
SEVERAL: dict[str, Any] = {"values": ["a", "b", "p"], "choose": "several"}
PARTED = {
    "several": one_collection("it", **SEVERAL, most=2)["it"],
    "any number": one_collection("it", **SEVERAL)["it"],
    "tables": one_collection("it", questions={"a": ["p", "q"], "c": ["p", "q"]}, tables=True)["it"],
    "moments": one_collection("it", features={"a": [0, 9], "c": [0, 9]}, measure="moments")["it"],
}
DOMAINS = {
    "boolean": one_collection("it")["it"],
    "strings": one_collection("it", values=["a", "b", "é"], other="another")["it"],
    "integers": one_collection("it", values=[1, 2, 3])["it"],
    "open": one_collection("it", values="open", model="central", budget=1, delta=0.001)["it"],
    "range": one_collection("it", model="central", budget=1, range=[0, 100])["it"],
    "crossed": one_collection("it", values=["a", "b"], cross={"plan": ["p", "q"]})["it"],
    **PARTED,
}


def effect(domain: str, value: object) -> int:
    """Return the input that a value is to a randomizer; what is drawn is drawn alike."""
    return DOMAINS[domain].domain.input(value, SeededRandomSource(3))


def stored(value: object) -> object:
    """Return a value that was kept on the device."""
    return decode(encode(value))


def changed(domain: str) -> list[object]:
    """Return the values that have another effect once they were kept on the device."""
    return [
        value for value in NUMBERS + OBJECTS
        if effect(domain, stored(value)) != effect(domain, value)
    ]  # fmt: skip


@pytest.mark.parametrize("domain", DOMAINS)
def test_any_value_has_on_the_device_the_effect_that_it_has_in_memory(domain: str) -> None:
    """Once, a number closer to 0 than 2^-1000 came back as infinite."""
    assert changed(domain) == []


@pytest.mark.parametrize("domain", PARTED)
def test_a_value_whose_parts_are_lost_is_found(
    domain: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wrong, and once so: a set or a mapping was kept as nothing, and drawn instead."""
    plain = held_values._plain
    lost = (set, frozenset, dict)
    monkeypatch.setattr(
        held_values, "_plain", lambda value: None if isinstance(value, lost) else plain(value)
    )

    assert changed(domain)


@pytest.mark.parametrize(
    ("takes", "domain"), [("any", "boolean"), ("max", "range"), ("sum", "range")]
)
def test_any_two_kinds_merge_alike_in_memory_and_on_the_device(takes: str, domain: str) -> None:
    """Once, of Decimals the device reported the first alone: they did not add to what it held."""
    rule = Takes(takes)
    for first, second, third in product(NUMBERS[::2] + OBJECTS[::6], NUMBERS, NUMBERS[1::6]):
        in_memory = merge(rule, merge(rule, first, second), third)
        on_device = merge(rule, stored(merge(rule, stored(first), second)), third)

        assert effect(domain, stored(on_device)) == effect(domain, in_memory)


@pytest.mark.parametrize(
    ("takes", "values", "result"),
    [
        ("sum", (Decimal("1.5"), 2.25, Fraction(1, 4), np.float32(2)), 6),
        ("sum", (np.int64(2**62), np.int64(2**62), -(2**63)), 0),
        ("max", (Decimal(3), np.float64(7), 5), 7),
        ("sum", (5, True, np.bool_(1), "7"), 5),
        ("max", (-1, True, np.bool_(1), "7"), -1),
        ("any", (1, 0), True),
    ],
)
def test_numbers_of_any_kind_merge(takes: str, values: Sequence[object], result: object) -> None:
    """A Decimal and a float, or two numbers of numpy that overflow, are numbers all the same."""
    total = values[0]
    for value in values[1:]:
        total = merge(Takes(takes), total, value)

    assert total == result


def test_a_running_value_stays_small() -> None:
    """However many records there are, and of whatever fractions."""
    total: object = Fraction(1, 3)
    for denominator in range(3, 2000):
        total = merge(Takes.SUM, total, Fraction(1, denominator))

    assert len(encode(total)) < 1500
    assert canonical(stored(total)) == total
