"""Simulated devices, without a client each.

Each has a secret as a real device has, and draws the same schedule from it: its side of a paired
collection, its periods, pseudonyms and slots. Its message is drawn from the exact distribution of
the mechanism. The columns are those that the API decodes requests into, and take the same path from
there. The population is drawn from a seed, so that nobody in it is protected, and many devices
share a batch, as real ones never do.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.random import Generator

from veilcount_analysis.mechanisms.sampling import Ints
from veilcount_analysis.series.packed_rows import Packed
from veilcount_analysis.simulation import simulate_messages
from veilcount_shared import Collection, SystemRandomSource, schedule
from veilcount_shared.domain import Number
from veilcount_shared.report import MAX_REPORTS
from veilcount_shared.schedule import SECRET_BYTES
from veilcount_shared.verdict import Verdict

from ...intake.decode import DecodedBody
from ...intake.decode.columns import ReportColumns
from .population import Flags, TrueAnswers

Take = Callable[[DecodedBody], list[Verdict]]


def draw_secrets(size: int, generator: Generator) -> list[bytes]:
    """Return the secret of each simulated device."""
    return [generator.bytes(SECRET_BYTES) for _ in range(size)]


@dataclass(frozen=True, slots=True, eq=False)
class SimulatedReports:
    """All reports of the simulated devices for one collection, in the order of the days."""

    collection: Collection
    answers: TrueAnswers
    slots: Ints
    pseudonyms: Packed
    messages: Packed

    @classmethod
    def draw(
        cls,
        collection: Collection,
        answers: TrueAnswers,
        secret_of: Sequence[bytes],
        generator: Generator,
    ) -> SimulatedReports:
        """Return the reports of the answers that the devices' schedules select."""
        selected = answers.where(_selected(collection, answers, secret_of))
        # Shuffled first: within a day, the order of the rows reveals nothing.
        shuffled = selected.where(generator.permutation(len(selected)))
        sent = shuffled.where(np.argsort(shuffled.days, kind="stable"))
        randomness = SystemRandomSource()  # for linkage "none", which has nothing else
        slots, names = [], []
        columns = (sent.people.tolist(), sent.periods.tolist(), sent.orders.tolist())
        for person, period, order in zip(*columns, strict=True):
            secret = secret_of[person]
            slots.append(schedule.draw_slot(secret, collection, period, order))
            names.append(schedule.derive_pseudonym(secret, collection, period, randomness))
        return cls(
            collection,
            sent,
            np.array(slots, np.int64),
            np.frombuffer(b"".join(names), np.uint8).reshape(len(sent), -1),
            simulate_messages(collection, _inputs(collection, sent.values), generator),
        )

    def deliver(self, days: range, take: Take) -> Counter[Verdict]:
        """Hand over the reports of these days; return their verdicts."""
        first, last = np.searchsorted(self.answers.days, [days.start, days.stop]).tolist()
        verdicts: Counter[Verdict] = Counter()
        for begin in range(first, last, MAX_REPORTS):
            verdicts.update(take(self._body(slice(begin, min(begin + MAX_REPORTS, last)))))
        return verdicts

    def _body(self, rows: slice) -> DecodedBody:
        size = rows.stop - rows.start
        columns = ReportColumns(
            self.collection.fingerprint,
            np.arange(size),
            self.pseudonyms[rows],
            self.answers.periods[rows],
            self.answers.segments[rows],
            self.slots[rows],
            self.messages[rows],
        )
        return DecodedBody(size, (columns,))


def _inputs(collection: Collection, values: Ints) -> Ints:
    """Return values as inputs of the mechanism: numbers as points of its grid."""
    domain = collection.domain
    if not isinstance(domain, Number) or collection.trust.reveals:
        return values
    randomness = SystemRandomSource()  # of a number within the range, none is thrown
    numbers = range(int(domain.low), int(domain.high) + 1)
    points = np.array([domain.input(Fraction(number), randomness) for number in numbers], np.int64)
    return points[values - numbers.start]


def _selected(collection: Collection, answers: TrueAnswers, secret_of: Sequence[bytes]) -> Flags:
    """Return which answers each device's own schedule selects, before any data."""
    allowed = np.zeros((len(secret_of), collection.periods), np.bool_)
    for person in np.unique(answers.people).tolist():
        if schedule.is_selected(secret_of[person], collection):
            drawn = schedule.draw_answering_periods(secret_of[person], collection)
            allowed[person, list(drawn)] = True
    return allowed[answers.people, answers.periods]
