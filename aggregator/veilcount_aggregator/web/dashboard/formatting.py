"""How pages write values, days, levels and figures; also as filters of the templates."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from fractions import Fraction
from typing import Any

from veilcount_analysis.text import number_format
from veilcount_analysis.text.number_format import sentence_case
from veilcount_analysis.text.result_columns import value_name

from ...queries.json_encoding import decimal
from .svg import draw


def row_name(value: object) -> str:
    """Return what a row of a result is about: a value, or the mean."""
    return "the mean" if value is None else value_name(value)


MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def day(when: date) -> str:
    """Return a UTC day, as people write it."""
    return f"{when.day} {MONTHS[when.month - 1]} {when.year}"


def first_day(first: date, last: date) -> str:
    """Return the first of some days, without what it has in common with the last."""
    if first.year != last.year:
        return day(first)
    return f"{first.day}" if first.month == last.month else f"{first.day} {MONTHS[first.month - 1]}"


def days(first: date, last: date) -> str:
    """Return the UTC days from a first to a last."""
    return day(first) if first == last else f"{first_day(first, last)} to {day(last)}"


def level(part: float) -> str:
    """Return a confidence level."""
    return f"{100 * part:.4g}\N{NO-BREAK SPACE}%"


def short_percent(share: float) -> str:
    """Return a round share, as an axis has it."""
    return f"{100 * share:.4g}%"


def short_number(number: float) -> str:
    """Return a round number, as an axis has it."""
    return f"{number:,.6g}"


def fake_share(share: float) -> str:
    """Return a share of fake reports."""
    return f"{number_format.significant(100 * share, 3)}%"


def error_bar(half_width: float | None, quantity: str) -> str:
    """Return half an interval of a mean, or of a share in points; nothing for None."""
    if half_width is None:
        return ""
    return number_format.around(half_width, of_shares=quantity not in number_format.NUMBERS)


def unsigned_error(error: float, quantity: str) -> str:
    """Return an error without its sign."""
    return error_bar(error, quantity).removeprefix("+/- ")


def short_epsilon(number: Fraction | float | str) -> str:
    """Return an epsilon, short."""
    return number_format.epsilon(Fraction(number))


FILTERS: dict[str, Callable[..., Any]] = {
    "adjacency": number_format.adjacency,
    "thousands": "{:,}".format,
    "day": day,
    "decimal": decimal,
    "delta": number_format.delta,
    "drawn": draw,
    "epsilon": short_epsilon,
    "error": error_bar,
    "fake_share": fake_share,
    "first_day": first_day,
    "level": level,
    "sentence": sentence_case,
}
