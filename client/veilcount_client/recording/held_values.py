"""Held values: running values of periods that report the last, any, largest or summed record.

`held = "process"` keeps them in memory, where the end of the process freezes them;
`held = "device"` keeps them in the state, across processes, until the person's instant.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from itertools import islice
from typing import Any

from veilcount_shared.collection import Takes
from veilcount_shared.domain import MAX_LABEL, is_number, normalized

MOST_BITS = 1000  # of a number that is kept, on either side of the point
MOST_PARTS = 1000  # of a value that is kept: no domain reads more of them


class _Unknown:
    """Stands for a value that no domain has; two of them are not equal."""


_MERGE: dict[Takes, Callable[[Any, Any], object]] = {
    Takes.ANY: lambda held, new: held if held == 1 else new,
    Takes.MAX: lambda held, new: max(_number(held), _number(new)),
    Takes.SUM: lambda held, new: _number(held) + _number(new),
}


def merge(takes: Takes, held: object, new: object) -> object:
    """Return what a period would report after another record.

    Numbers of different kinds (a Decimal, a float, one of numpy) do not add up by themselves, and
    what the device holds has become a Fraction: all are merged as the kind that is stored.
    """
    if takes is Takes.LAST:
        return new
    try:
        return canonical(_MERGE[takes](canonical(held), canonical(new)))
    except Exception:  # noqa: BLE001 - a value's own code may raise anything; what was held stays
        return held


def canonical(value: object) -> object:
    """Return a value as the state gives it back."""
    try:
        return _value(_plain(value))
    except Exception:  # noqa: BLE001 - a value's own code may raise anything: it is unknown
        return _Unknown()


def encode(value: object) -> str:
    """Return a value as text that `decode` reads as an equal one; of what fits nowhere, nothing."""
    try:
        return json.dumps(_plain(value), separators=(",", ":"))
    except Exception:  # noqa: BLE001 - a value's own code may raise anything: it is unknown
        return "null"


def decode(text: str) -> object:
    """Return the value of a text."""
    return _value(json.loads(text))


def _plain(value: object) -> object:
    """Return a value as JSON has it. Parts have none of their own: no domain looks into them."""
    if isinstance(value, list | tuple):
        return [_part(part) for part in islice(value, MOST_PARTS)]
    if isinstance(value, set | frozenset):
        return {"set": [_part(part) for part in islice(value, MOST_PARTS)]}
    if isinstance(value, Mapping):
        return {"named": dict(_named(value))}
    return _single(value)


def _named(value: Mapping[Any, object]) -> Iterator[tuple[str, object]]:
    for name in islice(value, MOST_PARTS):
        if isinstance(name, str):
            yield name, _part(value[name])


def _part(value: object) -> object:
    """Return a part: an unknown one leaves the others as they are."""
    try:
        return _single(value)
    except Exception:  # noqa: BLE001 - a value's own code may raise anything: it is unknown
        return None


def _single(value: object) -> object:
    if isinstance(value, bool):
        return value
    if isinstance(value, int | Fraction):
        ratio = Fraction(value)
        if abs(ratio) >= 1 << MOST_BITS:  # beyond every range
            return {"number": "inf" if ratio > 0 else "-inf"}
        if ratio.denominator.bit_length() > MOST_BITS:  # finer than every range's grid
            ratio = Fraction(math.floor(ratio * (1 << MOST_BITS)) or 1, 1 << MOST_BITS)
        return {"ratio": [str(ratio.numerator), str(ratio.denominator)]}
    if isinstance(value, str):
        return _text(value)
    return _other(value)


def _other(value: Any) -> object:
    """Return a number of another type, or numpy's boolean; there is nothing else."""
    if not is_number(value):
        return {False: False, True: True}[value]
    number = float(value)  # a complex one raises
    return {"number": repr(number)} if not math.isfinite(number) else _single(Fraction(number))


def _text(value: str) -> str | None:
    """Return a string; of a long one what is hashed, and a space: it must not become a label."""
    if len(value) <= MAX_LABEL:
        return value
    text = normalized(value)
    return None if text is None else f" {text}"


def _number(value: Any) -> Any:
    if not is_number(value):
        raise TypeError("no number")
    return value


def _value(plain: Any) -> object:
    if isinstance(plain, dict):
        if "number" in plain:
            return float(plain["number"])
        if "set" in plain:
            return frozenset(map(_value, plain["set"]))
        if "named" in plain:
            return {name: _value(part) for name, part in plain["named"].items()}
        ratio = Fraction(*map(int, plain["ratio"]))
        return int(ratio) if ratio.denominator == 1 else ratio
    if isinstance(plain, list):
        return [_value(part) for part in plain]
    return _Unknown() if plain is None else plain
