"""How pages write values, days, levels and figures; also as filters of the templates."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import date
from fractions import Fraction
from math import floor, isfinite, log10
from typing import Any

from veilcount_analysis.text import number_format
from veilcount_analysis.text.number_format import POINTS, sentence_case
from veilcount_analysis.text.result_columns import spelled
from veilcount_shared.guessing import percent

from ...queries.json_encoding import decimal
from .svg import draw


def value_name(value: object) -> str:
    """Return a value as people read it: of a crossed one its parts, of a range its ends."""
    if not isinstance(value, dict):
        return spelled(value)
    if set(value) == {"from", "below"}:
        return f"{value['from']:.6g} to {value['below']:.6g}"
    return " · ".join(spelled(part) for part in value.values())


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


def number_interval(low: float, high: float) -> str:
    """Return the ends of a number's interval."""
    return f"{number_format.precise(low, low, high)} to {number_format.precise(high, low, high)}"


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
    "percent": percent,
    "row_name": row_name,
    "sentence": sentence_case,
    "unsigned_error": unsigned_error,
    "value_name": value_name,
}


HUNDRED = 100
MOST = 6  # decimals


@dataclass(frozen=True, slots=True)
class FigureFormat:
    """Formats shares in percent, their differences in points, and numbers in their own units."""

    of_shares: bool
    decimals: int

    @classmethod
    def for_widths(cls, widths: Iterable[float], *, of_shares: bool) -> FigureFormat:
        """Return the format that shows two digits of the narrowest width."""
        scale = HUNDRED if of_shares else 1
        some = [scale * width for width in widths if isfinite(width) and width > 0]
        places = 1 - floor(log10(min(some))) if some else 1
        return cls(of_shares, min(max(places, 0), MOST))

    def bare(self, number: float) -> str:
        """Return a number without its unit."""
        scaled = round(number * HUNDRED if self.of_shares else number, self.decimals)
        return f"{scaled + 0.0:,.{self.decimals}f}"  # + 0.0: a zero has no sign

    def figure(self, number: float) -> str:
        """Return a share or a number."""
        return self.bare(number) + ("%" if self.of_shares else "")

    def size(self, number: float) -> str:
        """Return the size of a difference."""
        return self.bare(number) + (POINTS if self.of_shares else "")

    def signed(self, number: float) -> str:
        """Return a difference, with its sign."""
        bare = self.bare(number)
        return bare if bare.startswith("-") or float(bare.replace(",", "")) == 0 else f"+{bare}"

    def ends(self, low: float, high: float) -> str:
        """Return the two ends of an interval, without a unit."""
        return f"{self.bare(low)} to {self.bare(high)}"
