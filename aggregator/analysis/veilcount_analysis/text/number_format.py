"""How figures are written: an error in points of a share or in a number's own units."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal, Inexact, localcontext
from fractions import Fraction
from math import ceil, floor, isfinite, log10

MILLION = 10**6
NUMBERS = frozenset({"mean", "moment"})  # estimated quantities that are no shares
POINTS = " points"
POINT_DIGITS, MEAN_DIGITS = 2, 3  # of half an interval
PLACES, DIGITS = Decimal("1e-12"), 40  # of a decimal without an end
LEAST_SHOWN = 1e-4  # of a share: below, two decimals would show zeros


def excess(part: float) -> str:
    """Return by how much a variance is above the least possible, in percent, rounded up."""
    if part <= 0:
        return "the least possible"
    return f"{max(1, ceil(part * 1000 - 1e-9)) / 10:g} % above the least possible"


def adjacency(kind: str) -> str:
    """Return an adjacency as a noun, to stand behind an epsilon."""
    return "substitution" if kind == "substitute" else str(kind)


def epsilon(number: Fraction | float) -> str:
    """Return an epsilon, short."""
    return f"{float(number):.6g}"


def share(part: float) -> str:
    """Return a share as a percentage."""
    small = 0 < abs(part) < LEAST_SHOWN
    return f"{part * 100:.2g}%" if small else f"{part:.2%}"


def figure(value: float, *, of_shares: bool) -> str:
    """Return a share as a percentage, a number in its own units."""
    return share(value) if of_shares else f"{value:,.6g}"


def sentence_case(text: str) -> str:
    """Return a text with a capital first letter; the others stay."""
    return f"{text[:1].upper()}{text[1:]}"


def frequency(level: float) -> str:
    """Return a level as how often an interval holds: 0.95 is 19 times in 20."""
    ratio = Fraction(str(level))
    return f"{ratio.numerator:,} times in {ratio.denominator:,}"


def significant(number: float, digits: int) -> str:
    """Return a number to so many digits; with an exponent only where it is hardly anything."""
    if not number:
        return "0"
    return f"{rounded(number, digits):,.12g}"


def rounded(number: float, digits: int) -> float:
    """Return a number other than 0, rounded to so many digits."""
    return round(number, digits - 1 - floor(log10(abs(number))))


def precise(value: float, low: float, high: float) -> str:
    """Return a number with the digits that an interval of it leaves any meaning."""
    width = (high - low) / 2
    places = 6 if width <= 0 else 1 - floor(log10(width))
    return f"{round(value, places):,.{max(0, places)}f}"


def around(half_width: float, *, of_shares: bool) -> str:
    """Return half an interval: of a share in points."""
    if of_shares:
        return f"+/- {significant(half_width * 100, POINT_DIGITS)}{POINTS}"
    return f"+/- {significant(half_width, MEAN_DIGITS)}"


def difference(number: float, *, of_shares: bool) -> str:
    """Return what one figure is above another: of shares in points."""
    return f"{number * 100:+.2f}{POINTS}" if of_shares else f"{number:+,.6g}"


def interval(low: float, high: float, *, of_shares: bool) -> str:
    """Return the two ends."""
    return f"{figure(low, of_shares=of_shares)} to {figure(high, of_shares=of_shares)}"


def number_interval(low: float, high: float) -> str:
    """Return the ends of a number's interval."""
    return f"{precise(low, low, high)} to {precise(high, low, high)}"


def decimal(number: Fraction) -> str:
    """Return an exact number as a decimal; without an end it is rounded up, as a cost."""
    with localcontext(Context(prec=DIGITS)) as context:
        exact = Decimal(number.numerator) / Decimal(number.denominator)
        if context.flags[Inexact]:
            exact = exact.quantize(PLACES, rounding=ROUND_CEILING)
    text = f"{exact:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def delta(number: Fraction) -> str:
    """Return a delta without an exponent."""
    return f"{float(number):.15f}".rstrip("0")


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

    def signed(self, number: float) -> str:
        """Return a difference, with its sign."""
        bare = self.bare(number)
        return bare if bare.startswith("-") or float(bare.replace(",", "")) == 0 else f"+{bare}"

    def ends(self, low: float, high: float) -> str:
        """Return the two ends of an interval, without a unit."""
        return f"{self.bare(low)} to {self.bare(high)}"


def in_unit(text: str, unit: str | None) -> str:
    """Return a text with the unit of its number, if the definition states one."""
    return f"{text} {unit}" if unit else text


def level(part: float) -> str:
    """Return a confidence level."""
    return f"{100 * part:.4g}\N{NO-BREAK SPACE}%"


def fake_share(share: float) -> str:
    """Return a share of fake reports."""
    return f"{significant(100 * share, 3)}%"


def error_bar(half_width: float | None, quantity: str) -> str:
    """Return half an interval of a mean, or of a share in points; nothing for None."""
    if half_width is None:
        return ""
    return around(half_width, of_shares=quantity not in NUMBERS)


def unsigned_error(error: float, quantity: str) -> str:
    """Return an error without its sign."""
    return error_bar(error, quantity).removeprefix("+/- ")


UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
FORM = "give bytes, or a number with a unit, like 256MB or 2GB"

_SIZE = re.compile(r"(\d+)\s*([kmgt]?)(?:i?b)?", re.IGNORECASE)


def parse_bytes(text: str) -> int:
    """Return a size in bytes, or raise ValueError."""
    match = _SIZE.fullmatch(text.strip())
    if not match or not int(match[1]):
        raise ValueError(FORM)
    return int(match[1]) * UNITS[match[2].lower()]


def format_bytes(size: int) -> str:
    """Return a size in the largest unit of which there is one, with three digits."""
    for unit, bytes_each in reversed(UNITS.items()):
        if size >= bytes_each > 1:
            return (
                f"{size / bytes_each:.3g} {unit.upper()}B"
                if size < 1000 * bytes_each
                else (f"{size / bytes_each:,.0f} {unit.upper()}B")
            )
    return f"{size:,} bytes"
