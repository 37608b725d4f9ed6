"""Whether the sample is large enough: the error at this n, and the n for a target error.

The error falls with the square root of n; the same formula gives n for an error. Errors are those
of the mechanism that devices use, with its worst or average noise (`trust_models.error_models`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import ceil, floor, log10, sqrt

from veilcount_shared import Collection
from veilcount_shared.domain import Number

from ...analysis.trust_models import Quantity
from ...analysis.trust_models.quantity import two_sided
from ...mechanisms import handler_of, share_handler
from ...text import number_format

GOAL = 0.03  # of a share, or of a number's range: half of an interval that decides something
SIGNIFICANT = 0.01  # of a long list's value: a share that is distinguished from noise
LISTED = 20  # values up to which each has an interval of its own worth reading
ROUGH = 3  # times the goal: large and small are still distinguished
DIGITS = 2  # shown

GOOD, WEAK, BAD, PLAIN = "good", "weak", "bad", "plain"


@dataclass(frozen=True, slots=True)
class Terms:
    """The terms of the intervals: level, how many are simultaneous, whether sampling counts."""

    level: float = 0.95
    at_once: int = 1  # how many intervals hold together
    sampled: bool = False  # of the population: sampling error counts too

    @property
    def reach(self) -> float:
        """How many standard deviations an interval reaches [Bonferroni]."""
        return two_sided(1 - (1 - self.level) / self.at_once)


@dataclass(frozen=True, slots=True)
class SampleAdequacy:
    """Whether n reports are enough: a tone, a text, and the n that is needed."""

    tone: str
    text: str
    n: int
    half_width: float | None  # None: no reports
    goal: float
    needed: int


@dataclass(frozen=True, slots=True)
class ErrorModel:
    """The error of a figure: n times its variance, in the units it is shown in."""

    noise: float
    sampling: float
    goal: float
    of_shares: bool
    values: int | None = None  # of a long list: how many might stand out by chance
    figure: str = ""  # of which, where it is not plain

    def half_width(self, n: int, terms: Terms) -> float:
        """Return half of an interval over n answers; of a long list, the least share seen."""
        return self._reach(terms) * sqrt(self._variance(terms) / n)

    def needed(self, error: float, terms: Terms) -> int:
        """Return the least n at which the error is no larger."""
        n = ceil(self._variance(terms) * (self._reach(terms) / error) ** 2)
        return n if self.half_width(n, terms) <= error else n + 1  # a rounding at the border

    def _variance(self, terms: Terms) -> float:
        return self.noise + (self.sampling if terms.sampled and self.values is None else 0.0)

    def _reach(self, terms: Terms) -> float:
        if self.values is None:
            return terms.reach
        return Terms(terms.level, self.values).reach


@lru_cache(maxsize=1024)
def error_model(collection: Collection) -> ErrorModel:
    """Return the error of a local collection's figures."""
    quantity, handler = Quantity.from_collection(collection), handler_of(collection.mechanism)
    if handler.has_shares and collection.inputs > LISTED:
        rare = share_handler(collection).rare_variance()
        return ErrorModel(rare, 0.0, SIGNIFICANT, True, collection.inputs)
    noise, goal = handler.noise_variance() * quantity.width**2, GOAL * quantity.width
    of_shares = quantity.inputs is not None
    figure = ""
    if isinstance(collection.domain, Number):
        figure = " for a quarter of the range" if of_shares else " for the mean"
    return ErrorModel(noise, quantity.sampling(None), goal, of_shares, figure=figure)


def sample_adequacy(collection: Collection, n: int, terms: Terms | None = None) -> SampleAdequacy:
    """Judge n reports of a local collection by its mechanism."""
    model, terms = error_model(collection), terms or Terms()
    needed = model.needed(model.goal, terms)
    if not n:
        text = f"No reports yet: {_many(needed)} needed {_until(model)}{model.figure}"
        return SampleAdequacy(PLAIN, text, 0, None, model.goal, needed)
    return _adequacy(model, n, model.half_width(n, terms), needed)


def observed_adequacy(collection: Collection, n: int, half_width: float) -> SampleAdequacy:
    """Judge n reports by the width of their own intervals: for a subset of them."""
    model = error_model(collection)
    return _adequacy(model, n, half_width, ceil(n * (half_width / model.goal) ** 2))


def _adequacy(model: ErrorModel, n: int, half_width: float, needed: int) -> SampleAdequacy:
    shown, reports = _shown(model, half_width), f"{_many(needed)} reports"
    if half_width <= model.goal:
        tone, text = GOOD, f"Usable: {shown}{model.figure}"
    elif half_width <= ROUGH * model.goal:
        tone, text = WEAK, f"Rough: {shown}{model.figure}; {reports} {_until(model)}"
    else:
        tone, text = BAD, f"Insufficient: {reports} needed {_until(model)}{model.figure}"
    return SampleAdequacy(tone, text, n, half_width, model.goal, needed)


def _shown(model: ErrorModel, error: float) -> str:
    """Return an error in words, rounded up."""
    rounded = rounded_up(error)
    if model.values is not None:
        return f"shares above {_percent(rounded)} are significant"
    return number_format.around(rounded, of_shares=model.of_shares)


def _until(model: ErrorModel) -> str:
    if model.values is not None:
        return f"until a share of {_percent(model.goal)} is significant"
    return f"for {number_format.around(model.goal, of_shares=model.of_shares)}"


def _percent(share: float) -> str:
    return f"{number_format.significant(100 * share, DIGITS)}%"


def _many(number: int) -> str:
    return f"{rounded_up(number):,.0f}"


def rounded_up(number: float) -> float:
    """Return a positive number, rounded up to the digits shown."""
    places = DIGITS - 1 - floor(log10(number))
    scale = 10.0**places
    return ceil(round(number * scale, 9)) / scale
