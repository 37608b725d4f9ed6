"""The finding of a time range in a line: a figure with the interval of its own.

That a value leads is decided for all values at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor

from ..text.number_format import FigureFormat, in_unit, sentence_case
from ..text.result_columns import value_name
from .results import Figure

ONE_DIGIT = 5  # times an interval: of its half, one digit is shown
WIDE = 0.1  # half an interval of a share above which a headline says no more than its ends
AT_ONCE = "all values compared at once"
ANSWERS_ARE = "answers are"


@dataclass(frozen=True, slots=True)
class Headline:
    """A headline, and what was decided for all values at once."""

    text: str
    decision: str = ""


def largest_first(figures: Sequence[Figure]) -> list[Figure]:
    """Return the shares, the largest first."""
    shares = [figure for figure in figures if figure.kind == "share"]
    return sorted(shares, key=lambda share: -(share.figure or 0.0))


def shares_headline(figures: Sequence[Figure], *, leads: bool, verb: str = ANSWERS_ARE) -> Headline:
    """Return the share of true; else the largest, and where it does not lead the second too."""
    rows = largest_first(figures)
    texts = [share_text(row, verb) for row in rows[:2]]
    if (yes := next((row for row in rows if row.of is True), None)) is not None:
        return Headline(share_text(yes))
    if len(rows) == 1:
        return Headline(texts[0])
    if leads:
        decision = f"The largest share is that of {value_name(rows[0].of)}, {AT_ONCE}."
        return Headline(texts[0], decision)
    return Headline("; ".join(texts), f"Which is larger is not significant, {AT_ONCE}.")


def share_text(row: Figure, verb: str = ANSWERS_ARE) -> str:
    """Return a share's interval as a sentence; a wide one says no more than its ends."""
    low, high = _within(row)
    if high - low > 2 * WIDE:
        least, most = _hundredths(low, high)
        ends = f"somewhere between {least} and {most} of 100 {verb} {_name(row)}"
        return f"{sentence_case(ends)}; too few reports to say more"
    return share_range(row, verb)


def share_range(row: Figure, verb: str = ANSWERS_ARE) -> str:
    """Return a share's interval as a sentence, however wide."""
    return f"{share_ends(row)} {verb} {_name(row)}"


def _name(row: Figure) -> str:
    return "yes" if row.of is True else value_name(row.of)


def share_ends(row: Figure) -> str:
    """Return a share's interval."""
    least, most = _hundredths(*_within(row))
    return f"{least} to {most} of 100"


def _within(row: Figure) -> tuple[float, float]:
    low, high = (min(max(end, 0.0), 1.0) for end in row.interval)
    return low, high


def _hundredths(low: float, high: float) -> tuple[int, int]:
    """Return an interval in whole hundredths, rounded outwards: it holds what that holds."""
    return floor(100 * low), ceil(100 * high)


def mean_text(row: Figure, unit: str | None) -> str:
    """Return a mean in its unit, with its interval."""
    return f"Mean {mean_ends(row, unit)}"


def mean_ends(row: Figure, unit: str | None) -> str:
    """Return a mean's figure in its unit, and its interval."""
    written = FigureFormat.for_widths([ONE_DIGIT * row.width], of_shares=False)
    figure = written.figure(row.figure or 0.0)
    return f"{in_unit(figure, unit)}, {written.ends(*row.interval)}"
