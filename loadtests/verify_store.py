"""A store after a run: does it hold each acknowledged report once, and say what is true of them?

Exactly: n of every tally, every counter, every spent slot, every duplicate noted. And by chance at
most one time in a million wrong: all estimates at once lie around the truth of those honest reports
that were counted, in the intervals that an analyst is given. What attackers achieve is judged in
`defence`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from veilcount_aggregator.records.service_counters import counts_by_series
from veilcount_aggregator.store import Cell, Store
from veilcount_analysis import estimate
from veilcount_analysis.estimation import MeanEstimate, ShareEstimates
from veilcount_analysis.mechanisms import tally
from veilcount_analysis.series.packed_rows import Counters
from veilcount_analysis.series.series import Series
from veilcount_shared import Collection
from veilcount_shared.report import Report
from veilcount_shared.verdict import Verdict

from .population import Intent
from .server_verdicts import ServerVerdicts

Ends = float | NDArray[np.float64]

MADE_UP = frozenset(
    {Intent.FAKE, Intent.FLOOD, Intent.SPREAD}
)  # nobody holds what these reports say
ALPHA = 1e-6  # that a sound run fails, over all estimates together


@dataclass(frozen=True, slots=True)
class Answers:
    """The acknowledged reports of one collection, what is true of each, and which are fakes.

    And those that were sent and never acknowledged: nobody knows whether they were counted.
    """

    collection: Collection
    reports: list[Report] = field(default_factory=list)
    held: list[int] = field(default_factory=list)
    fakes: list[Report] = field(default_factory=list)
    unsure: list[Report] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The collection's."""
        return self.collection.name

    @property
    def cells(self) -> Counter[Cell]:
        """How many belong to each tally."""
        return _cells([*self.reports, *self.fakes])

    @property
    def unsure_cells(self) -> Counter[Cell]:
        """How many more each tally may have."""
        return _cells(self.unsure)

    @property
    def counters(self) -> Counters:
        """What counters all these messages make."""
        return self._tally([*self.reports, *self.fakes])

    @property
    def unsure_counters(self) -> Counters:
        """What more the counters may be."""
        return self._tally(self.unsure)

    @property
    def honest(self) -> Counters:
        """What counters the messages of honest devices make."""
        return self._tally(self.reports)

    def _tally(self, reports: list[Report]) -> Counters:
        rows = np.frombuffer(b"".join(report.message for report in reports), np.uint8)
        return tally(self.collection, rows.reshape(len(reports), self.collection.message_bytes))


def _cells(reports: list[Report]) -> Counter[Cell]:
    return Counter(Cell(report.period, report.segment) for report in reports)


def answers(verdicts: ServerVerdicts) -> list[Answers]:
    """Return the acknowledged reports, by collection; also of those that have none."""
    found = {
        queued_report.collection.name: Answers(queued_report.collection)
        for queued_report in verdicts.queued_reports
    }
    for queued_report, report, held in verdicts.acknowledged():
        each = found[queued_report.collection.name]
        if queued_report.intent in MADE_UP:
            each.fakes.append(report)
        else:
            each.reports.append(report)
            each.held.append(held)
    for place in verdicts.open:
        queued_report = verdicts.queued_reports[place]
        found[queued_report.collection.name].unsure.extend(queued_report.reports)
    return list(found.values())


def store_problems(store: Store, verdicts: ServerVerdicts, alpha: float = ALPHA) -> list[str]:
    """Return everything that is wrong; nothing: the run is sound."""
    found = answers(verdicts)
    return [
        *verdicts.failures(),
        *(problem for each in found for problem in _kept(store, each)),
        *_duplicates(store, verdicts),
        *(problem for each in found for problem in _estimated(each, alpha / len(found))),
    ]


def _kept(store: Store, answers: Answers) -> Iterator[str]:
    """Whether the store holds each report once, in its place, with its message and its slot."""
    series, name, sent = Series(answers.collection), answers.name, answers.cells
    held = Counter(store.report_counts(series))
    if lost := (sent - held).total():
        yield f"{name}: lost {lost} of {sent.total()} acknowledged reports"
    if doubled := (held - sent - answers.unsure_cells).total():
        yield f"{name}: {doubled} reports more than the {sent.total()} acknowledged ones"
    if not sent:
        yield f"{name}: no report was acknowledged, so nothing is shown"
        return
    excess = store.counters(series, list(held)) - answers.counters
    if off := np.abs(excess - excess.clip(0, answers.unsure_counters)).sum():
        yield f"{name}: the counters are off those of the acknowledged messages by {off}"
    slots = sum(
        int(rows @ np.arange(1, len(rows) + 1)) for rows in store.spend_histograms(series).values()
    )
    if slots != held.total():
        yield f"{name}: {held.total()} reports counted, but {slots} slots spent"


def _duplicates(store: Store, verdicts: ServerVerdicts) -> Iterator[str]:
    """Yield if the store did not count the duplicates: acknowledged, or with a lost reply."""
    noted = sum(
        counts.verdicts[Verdict.DUPLICATE]
        for counts in counts_by_series(store.service_counts()).values()
    )
    least = verdicts.verdicts[Verdict.DUPLICATE]
    if not least <= noted <= least + verdicts.unsure:
        yield f"{least} duplicates were acknowledged, and the store counts {noted}"


def _estimated(answers: Answers, alpha: float) -> Iterator[str]:
    """Whether all intervals, together wrong with this chance, hold what is true of these.

    That the store's counters are those of these messages was shown before.
    """
    if not answers.reports:
        return
    collection = answers.collection
    estimated = estimate(collection, answers.honest, 1 - alpha, target="cohort", simultaneous=True)
    if isinstance(estimated, MeanEstimate):
        yield from _missed(
            answers.name, np.mean(answers.held, keepdims=True), estimated.low, estimated.high
        )
    elif isinstance(estimated, ShareEstimates):
        shares = np.bincount(answers.held, minlength=collection.inputs)
        yield from _missed(answers.name, shares / len(answers.held), estimated.low, estimated.high)
    else:
        yield f"{answers.name}: nothing can be estimated"


def _missed(name: str, truth: NDArray[np.float64], low: Ends, high: Ends) -> Iterator[str]:
    wrong = int(((truth < low) | (truth > high)).sum())
    if wrong:
        yield f"{name}: {wrong} of {len(truth)} estimates miss the truth of what was counted"
