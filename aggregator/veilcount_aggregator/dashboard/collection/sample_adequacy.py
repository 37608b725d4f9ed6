"""Whether there are answers enough: how far off figures are at this n, and how many it takes.

The error falls with the square root of n, so the question "how many for this error?" is the same
formula read backwards. Errors are those of the design that a device really uses, with its worst or
average noise as `contrast.laws` has it, and never those of one lucky estimate.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import ceil, floor, log10, sqrt

from veilcount_shared import Collection
from veilcount_shared.domain import Number

from ...analysis.trust_models import Quantity
from ...analysis.trust_models.error_models import two_sided
from ...mechanisms import handler_of, share_handler
from ...text import number_format

GOAL = 0.03  # of a share, or of a number's range: half of an interval that decides something
STANDS_OUT = 0.01  # of a long list's value: a share that is told from noise
LISTED = 20  # values up to which each has an interval of its own worth reading
ROUGH = 3  # so many times the goal still shows what is large and what is small
DIGITS = 2  # that are told

GOOD, WEAK, BAD, PLAIN = "good", "weak", "bad", "plain"


@dataclass(frozen=True, slots=True)
class Judged:
    """On which terms figures are judged: as their intervals are shown."""

    level: float = 0.95
    at_once: int = 1  # so many intervals hold together
    sampled: bool = False  # of the population: who was asked is chance too

    @property
    def reach(self) -> float:
        """How many standard deviations an interval reaches [Bonferroni]."""
        return two_sided(1 - (1 - self.level) / self.at_once)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What so many answers are good for."""

    tone: str
    text: str
    n: int
    half_width: float | None  # None: no answers
    goal: float
    needed: int


@dataclass(frozen=True, slots=True)
class Yardstick:
    """What a figure's error is measured by: n times its variance, in the units it is told in."""

    noise: float
    sampling: float
    goal: float
    of_shares: bool
    values: int | None = None  # of a long list: how many might stand out by chance
    figure: str = ""  # of which, where it is not plain

    @classmethod
    def of(cls, collection: Collection) -> Yardstick:
        """Return that of a collection whose devices add the noise."""
        return _yardstick(collection)

    def half_width(self, n: int, judged: Judged) -> float:
        """Return half of an interval over n answers; of a long list, the least share seen."""
        return self._reach(judged) * sqrt(self._variance(judged) / n)

    def needed(self, error: float, judged: Judged) -> int:
        """Return the least n at which the error is no larger."""
        n = ceil(self._variance(judged) * (self._reach(judged) / error) ** 2)
        return n if self.half_width(n, judged) <= error else n + 1  # a rounding at the border

    def _variance(self, judged: Judged) -> float:
        return self.noise + (self.sampling if judged.sampled and self.values is None else 0.0)

    def _reach(self, judged: Judged) -> float:
        if self.values is None:
            return judged.reach
        return Judged(judged.level, self.values).reach


@lru_cache(maxsize=1024)
def _yardstick(collection: Collection) -> Yardstick:
    quantity, handler = Quantity.of(collection), handler_of(collection.mechanism)
    if handler.has_shares and collection.inputs > LISTED:
        rare = share_handler(collection).rare_variance()
        return Yardstick(rare, 0.0, STANDS_OUT, True, collection.inputs)
    noise, goal = handler.noise_variance() * quantity.span**2, GOAL * quantity.span
    of_shares = quantity.inputs is not None
    figure = ""
    if isinstance(collection.domain, Number):
        figure = " for a quarter of the range" if of_shares else " for the mean"
    return Yardstick(noise, quantity.sampling(None), goal, of_shares, figure=figure)


def verdict(collection: Collection, n: int, judged: Judged | None = None) -> Verdict:
    """Return what n answers of a local collection are good for."""
    yardstick, terms = Yardstick.of(collection), judged or Judged()
    needed = yardstick.needed(yardstick.goal, terms)
    if not n:
        text = f"No answers yet: {_many(needed)} needed {_until(yardstick)}{yardstick.figure}"
        return Verdict(PLAIN, text, 0, None, yardstick.goal, needed)
    half_width = yardstick.half_width(n, terms)
    tone, text = _said(yardstick, half_width, needed)
    return Verdict(tone, text, n, half_width, yardstick.goal, needed)


def verdict_seen(collection: Collection, n: int, half_width: float) -> Verdict:
    """Return what n answers are good for where their own intervals tell it: of a part of them."""
    yardstick = Yardstick.of(collection)
    needed = ceil(n * (half_width / yardstick.goal) ** 2)
    tone, text = _said(yardstick, half_width, needed)
    return Verdict(tone, text, n, half_width, yardstick.goal, needed)


def _said(yardstick: Yardstick, half_width: float, needed: int) -> tuple[str, str]:
    shown = _shown(yardstick, half_width)
    if half_width <= yardstick.goal:
        return GOOD, f"Usable: {shown}{yardstick.figure}"
    if half_width <= ROUGH * yardstick.goal:
        return (
            WEAK,
            f"Rough: {shown}{yardstick.figure}; {_many(needed)} answers {_until(yardstick)}",
        )
    return BAD, f"Too few: {_many(needed)} answers needed {_until(yardstick)}{yardstick.figure}"


def _shown(yardstick: Yardstick, error: float) -> str:
    """Return an error in words, rounded against us."""
    rounded = rounded_up(error)
    if yardstick.values is not None:
        return f"shares above {_percent(rounded)} stand out from noise"
    return number_format.around(rounded, of_shares=yardstick.of_shares)


def _until(yardstick: Yardstick) -> str:
    if yardstick.values is not None:
        return f"until a share of {_percent(yardstick.goal)} stands out"
    return f"for {number_format.around(yardstick.goal, of_shares=yardstick.of_shares)}"


def _percent(share: float) -> str:
    return f"{number_format.significant(100 * share, DIGITS)}%"


def _many(number: int) -> str:
    return f"{rounded_up(number):,.0f}"


def rounded_up(number: float) -> float:
    """Return a number above 0, rounded up to the digits that are told."""
    places = DIGITS - 1 - floor(log10(number))
    scale = 10.0**places
    return ceil(round(number * scale, 9)) / scale
