"""The batch of a planned question as it is shown: what it costs against whom, and who is lost."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from veilcount_analysis.planning.batches import BatchPlan
from veilcount_analysis.text.number_format import decimal, epsilon, error_bar, sentence_case, share
from veilcount_analysis.text.view_parts import Table
from veilcount_shared.guessing import percent
from veilcount_shared.periods import Unit

MECHANISMS = ("Mechanism", "Covers", "Accuracy with them", "")
SELECTED = "selected"


def batch_terms(batch: BatchPlan, unit: Unit, delta: Fraction) -> Iterator[tuple[str, str]]:
    """Yield covers and the costs against both adversaries: two figures, never added."""
    guess, unlucky = (percent(Fraction(chance)) for chance in (batch.guess, batch.unlucky))
    covers = (
        f"{batch.covers:,} a batch. With them alone, whoever else lies, the server's best guess"
        f" between two values is right {guess} of the time on average, and"
        f" {unlucky} after the least favourable outcome that epsilon allows."
    )
    yield "Covers", covers
    yield "Shuffler and server together", _cost(batch.together, batch.together_in_all, batch, unit)
    alone = _cost(batch.server, batch.server_in_all, batch, unit)
    yield "The server alone, if the shuffler keeps its word", f"{alone} at delta {decimal(delta)}"
    handed_over = (
        f"handed over {batch.grace} days after its {unit} if it has {batch.least:,} reports or"
        " more; that a device takes part is not hidden."
    )
    yield "Batch", handed_over


def _cost(one: Fraction, every: Fraction, batch: BatchPlan, unit: Unit) -> str:
    if batch.batches == 1:
        return f"epsilon {epsilon(one)}"
    return f"epsilon {epsilon(one)} a {unit}, {epsilon(every)} in {batch.batches:,} {unit}s"


def batch_tables(batch: BatchPlan, quantity: str) -> tuple[Table, ...]:
    """Return the mechanisms by their error, and who sends too late for a batch."""
    return _mechanisms(batch, quantity), _lost(batch)


def _mechanisms(batch: BatchPlan, quantity: str) -> Table:
    rows = [
        (
            sentence_case(choice.mechanism),
            f"{choice.covers:,}",
            error_bar(choice.error, quantity),
            SELECTED if choice.selected else "",
        )
        for choice in batch.mechanisms
    ]
    return Table("Mechanisms by their error with the covers that they need", MECHANISMS, rows)


def _lost(batch: BatchPlan) -> Table:
    graces = sorted({loss.grace for loss in batch.lost})
    parts = {(loss.starts, loss.grace): loss.lost for loss in batch.lost}
    starts = dict.fromkeys(loss.starts for loss in batch.lost)
    rows = [(habit, *(share(parts[habit, grace]) for grace in graces)) for habit in starts]
    heads = ("The app is started", *(f"{grace} days" for grace in graces))
    return Table("Reports that come too late, by the days that a batch waits", heads, rows)
