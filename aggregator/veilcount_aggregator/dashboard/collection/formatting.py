"""How values and figures stand on the page."""

from __future__ import annotations

from datetime import date

from ...text import number_format
from ...text.result_columns import spelled


def named(value: object) -> str:
    """Return a value as people read it: of a crossed one its parts, of a range its ends."""
    if not isinstance(value, dict):
        return spelled(value)
    if set(value) == {"from", "below"}:
        return f"{value['from']:.6g} to {value['below']:.6g}"
    return " · ".join(spelled(part) for part in value.values())


def days(first: date, last: date) -> str:
    """Return the UTC days from a first to a last."""
    return f"{first}" if first == last else f"{first} to {last}"


def between(low: float, high: float) -> str:
    """Return the ends of a number's interval."""
    return f"{number_format.precise(low, low, high)} to {number_format.precise(high, low, high)}"


def level_of(level: float) -> str:
    """Return a level of intervals."""
    return f"{100 * level:.4g}\N{NO-BREAK SPACE}%"


def of_fakes(fakes: float) -> str:
    """Return a share of the reports."""
    return f"{number_format.significant(100 * fakes, 3)}%"
