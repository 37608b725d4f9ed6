"""Whether n reports are enough to be read: the verdict that comes before any figure.

The error falls with the square root of n. It is that of the mechanism that devices use, with its
worst or average noise (`trust_models.quantity`), so it is known before the first report. The
error of an estimate is its interval, and the verdict states no second one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil, floor, log10, sqrt

from ..privacy.trust_models.quantity import two_sided
from ..text import number_format

GOAL = 0.03  # of a share, or of a number's range: half of an interval that decides something
SIGNIFICANT = 0.01  # of a long list's value: a share that is distinguished from noise
LISTED = 20  # values up to which each has an interval worth reading
ROUGH = 3  # times the goal: large and small are still distinguished; beyond, nothing is
DIGITS = 2  # shown

GOOD, WEAK, BAD, PLAIN = "good", "weak", "bad", "plain"


@dataclass(frozen=True, slots=True)
class Terms:
    """The terms of an interval: its level, and whether the sampling of persons counts."""

    level: float = 0.95
    sampled: bool = False

    @property
    def reach(self) -> float:
        """How many standard deviations an interval reaches."""
        return two_sided(self.level)


@dataclass(frozen=True, slots=True)
class SampleAdequacy:
    """Whether n reports are enough: a tone, a sentence, and the n for the goal."""

    tone: str
    text: str
    n: int
    needed: int

    @property
    def usable(self) -> bool:
        """Whether the figures can be read: without, they are shown on request only."""
        return self.tone in {GOOD, WEAK}


@dataclass(frozen=True, slots=True)
class ErrorModel:
    """The error of a figure: n times its variance, in the units it is shown in."""

    noise: float
    sampling: float
    goal: float
    of_shares: bool
    figure: str
    line: float | None = None  # of a long list: its noise line at one report

    def with_noise(self, added: float) -> ErrorModel:
        """Return the model with more noise, which raises the noise line in proportion."""
        noise, line = self.noise + added, self.line
        if line is not None:
            line *= sqrt(noise / self.noise)
        return replace(self, noise=noise, line=line)

    def half_width(self, n: int, terms: Terms) -> float:
        """Return half of an interval over n reports; of a long list, its noise line."""
        if self.line is not None:
            return self.line / sqrt(n)
        return terms.reach * sqrt((self.noise + self.sampling * terms.sampled) / n)

    def outlook(self, n: int, error: float) -> str:
        """Return what is known from n reports on."""
        begin = f"from about {rounded_up(n):,.0f} on"
        if self.line is not None or (self.of_shares and error > self.goal):
            return f"{begin}, {self.figure} of {percent(error)} can be told from noise"
        around = number_format.around(rounded_up(error), of_shares=self.of_shares)
        return f"{begin}, {self.figure} are known to {around}"


def sample_adequacy(model: ErrorModel, n: int, terms: Terms | None = None) -> SampleAdequacy:
    """Judge n reports by the error of the figures."""
    return _adequacy(model, n, model.half_width(max(n, 1), terms or Terms()))


def observed_adequacy(model: ErrorModel, n: int, half_width: float, terms: Terms) -> SampleAdequacy:
    """Judge n reports by the width of their own intervals: for a subset of them."""
    if model.line is not None:  # scale the noise line by observed / expected interval width
        half_width *= model.half_width(n, terms) / (terms.reach * sqrt(model.noise / n))
    return _adequacy(model, n, half_width)


def _adequacy(model: ErrorModel, n: int, half_width: float) -> SampleAdequacy:
    """Judge n reports by their error; none by the error of one."""

    def enough(error: float) -> int:
        return ceil(round(max(n, 1) * (half_width / error) ** 2, 6))

    needed, rough = enough(model.goal), ROUGH * model.goal
    if not n or half_width > rough:
        tone, begin = (BAD, f"{many(n)}: too few") if n else (PLAIN, "No reports")
        outlook = model.outlook(enough(rough), rough)
        return SampleAdequacy(tone, f"{begin}. {number_format.sentence_case(outlook)}.", n, needed)
    finding = ""
    if model.line is not None:
        finding = f"{model.figure} above {percent(half_width)} stand out from noise"
    if half_width <= model.goal:
        text = f"Usable: {finding}, all values compared at once." if finding else "Usable."
        return SampleAdequacy(GOOD, text, n, needed)
    outlook = model.outlook(needed, model.goal)
    text = "; ".join([part for part in (finding, outlook) if part])
    return SampleAdequacy(WEAK, f"Rough: {text}.", n, needed)


def many(n: int) -> str:
    """Return a number of reports."""
    return "1 report" if n == 1 else f"{n:,} reports"


def percent(share: float) -> str:
    """Return a share, rounded up."""
    return f"{number_format.significant(100 * rounded_up(share), DIGITS)}%"


def rounded_up(number: float) -> float:
    """Return a positive number, rounded up to the digits shown."""
    places = DIGITS - 1 - floor(log10(number))
    scale = 10.0**places
    return ceil(round(number * scale, 9)) / scale
