"""What was counted: how many pseudonyms have spent how much, where one of them is one person."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...analysis.budget import CollectionBudget, HistogramBar
from ...text import number_format
from ..charts import Drawn, axis, columns, counts

UNCOUNTED = (
    "No spend is counted: which answers are one person's, the aggregator cannot, or must not, tell."
)


@dataclass(frozen=True, slots=True)
class Counted:
    """The counted spend, in words; `drawn` is for admins, where there is enough to draw."""

    text: str
    why: str
    drawn: Drawn | None
    rows: list[tuple[str, str, str]]


def counted(account: CollectionBudget, bars: str) -> Counted:
    """Return what is told of the counted spend; `bars` says who may see how it is spread."""
    spent = account.spent
    if spent is None:
        return Counted(UNCOUNTED, "", None, [])
    if spent.mean is None or spent.worst is None:
        return Counted("Nothing is shown yet:", f"{bars}.", None, [])
    text = (
        f"{spent.pseudonyms:,} pseudonyms have spent epsilon {number_format.epsilon(spent.mean)}"
        f" in the mean, {number_format.epsilon(spent.worst)} at worst,"
        f" of at most {number_format.epsilon(spent.cap)}."
    )
    return Counted(text, _spread(spent.bars), _drawn(spent.bars), [_row(bar) for bar in spent.bars])


def _spread(bars: Sequence[HistogramBar]) -> str:
    if not bars:
        return "How it is spread is for admins."
    return f"All of them: {_slots(bars[0])}." if len(bars) == 1 else ""


def _drawn(bars: Sequence[HistogramBar]) -> Drawn | None:
    if len(bars) < 2:  # noqa: PLR2004 - one is no picture: a sentence says it
        return None
    told = [f"{bar.pseudonyms:,} pseudonyms: {_slots(bar)}" for bar in bars]
    part = counts([bar.pseudonyms for bar in bars], told)
    labels = [_spent(bar) for bar in bars]
    return columns(labels, [part], axis("answers spent", type="category"), axis("pseudonyms"))


def _row(bar: HistogramBar) -> tuple[str, str, str]:
    return _spent(bar), number_format.epsilon(bar.epsilon), f"{bar.pseudonyms:,}"


def _spent(bar: HistogramBar) -> str:
    return f"{bar.least:,}" if bar.least == bar.most else f"{bar.least:,} to {bar.most:,}"


def _slots(bar: HistogramBar) -> str:
    many = "answer" if bar.most == 1 else "answers"
    return f"{_spent(bar)} {many}, at most epsilon {number_format.epsilon(bar.epsilon)} each"
