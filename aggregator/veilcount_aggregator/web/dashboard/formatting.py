"""How pages write figures on axes and in templates: the filters of these."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

from veilcount_analysis.text import number_format
from veilcount_analysis.text.utc_days import day, first_day

from .svg import draw


def short_percent(share: float) -> str:
    """Return a round share, as an axis has it."""
    return f"{100 * share:.4g}%"


def short_number(number: float) -> str:
    """Return a round number, as an axis has it."""
    return f"{number:,.6g}"


def short_epsilon(number: Fraction | float | str) -> str:
    """Return an epsilon, short."""
    return number_format.epsilon(Fraction(number))


FILTERS: dict[str, Callable[..., Any]] = {
    "adjacency": number_format.adjacency,
    "thousands": "{:,}".format,
    "day": day,
    "delta": number_format.delta,
    "drawn": draw,
    "epsilon": short_epsilon,
    "fake_share": number_format.fake_share,
    "first_day": first_day,
    "frequency": number_format.frequency,
    "level": number_format.level,
    "sentence": number_format.sentence_case,
}
