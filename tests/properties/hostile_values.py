"""Values whose own code raises or lies, and every other kind that an app might record."""

from __future__ import annotations

from collections import UserString
from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from fractions import Fraction
from typing import Any, NoReturn

import numpy as np

from veilcount_shared.periods import Unit

PARTS = (True, "free", 1)  # a value of a boolean, crossed with a plan and a tier


def fail(*_: object) -> NoReturn:
    raise RuntimeError("a value's own code")


def raising(*names: str, base: type = object, **members: object) -> Any:
    """Return a type whose named special methods raise."""
    return type("Hostile", (base,), dict.fromkeys(names, fail) | members)


class Wrong:
    """Claims to be like a number, and returns no number."""

    def __float__(self) -> Any:
        return "not a float"

    def __hash__(self) -> Any:
        return "not a hash"  # noqa: PLE0309 - the point


class Colliding:
    """Has a label's hash, and raises when it is compared."""

    def __init__(self, label: object) -> None:
        self.label = label

    def __hash__(self) -> int:
        return hash(self.label)

    def __eq__(self, _: object) -> bool:
        raise ValueError("do not compare me")


class Breaking(tuple[object, ...]):
    """Yields one part, then raises."""

    __slots__ = ()

    def __iter__(self) -> Iterator[object]:
        yield True
        raise RuntimeError("no more parts")


#: sequences whose parts cannot be read
UNREADABLE = [
    raising("__iter__", base=tuple)(PARTS),
    raising("__iter__", "__len__", base=list)(PARTS),
    Breaking(PARTS),
]
ALL_METHODS = ("__float__", "__hash__", "__eq__", "__index__", "__len__", "__iter__", "__repr__")
HOSTILE: list[object] = [
    *UNREADABLE,
    raising("__len__", base=list)(PARTS),
    raising("__len__", base=tuple)(("light", "A", 2024)),
    raising("__eq__", base=str, __hash__=str.__hash__)("a"),
    *(raising(method)() for method in ("__hash__", "__eq__", "__float__")),
    raising(*ALL_METHODS)(),
    (raising(*ALL_METHODS)(),) * 3,
    raising(__class__=property(fail))(),
    Wrong(),
    *map(Colliding, ("light", "a", 2024, False, True)),
    raising(base=int, numerator="three")(3),
    raising(base=Fraction, numerator=None)(1, 3),
]
NUMBERS: list[object] = [
    *(0, 1, -1, True, 10**400, -(10**400), 0.1, -0.0, 5e-324, 1e308, 1.7976931348623157e308, 1j),
    *(float("nan"), float("inf"), -float("inf")),
    *(Fraction(1, 3), Fraction(10**400, 3), Fraction(1, 10**400)),
    *map(Decimal, ("0.3", "NaN", "sNaN", "Infinity", "-Infinity", "1e9999", "1e1000000")),
    *map(Decimal, ("-1e1000000", "1e-1000000")),
    *(np.float64("nan"), np.float32(0.5), np.int64(1), np.uint64(2**64 - 1), np.bool_(1)),
]
TEXTS: list[object] = [
    *("", "a", "1", "1e3", "light\x00", "\ud800", "x" * 100_000, UserString("a")),
    *(np.str_("dark"), b"a", b"light", bytearray(b"5"), memoryview(b"5")),
]
CONTAINERS: list[object] = [
    *((), [], {}, set(), ("light",), ["a"], [[]], (None,), ([], {}, set()), {"a": 1}, {"a"}),
    *(PARTS, (*PARTS, "more"), ["light", "A", 2024, "more"], ("light", None, object())),
    *(frozenset({"a"}), range(3), np.array([1.0, 2.0])),
]
OTHERS: list[object] = [
    *(None, object(), object, len, print, NotImplemented, ..., Exception("a")),
    *(date(2026, 12, 1), np.datetime64("NaT"), Unit.DAY),
]
ODD = [*HOSTILE, *NUMBERS, *TEXTS, *CONTAINERS, *OTHERS]
