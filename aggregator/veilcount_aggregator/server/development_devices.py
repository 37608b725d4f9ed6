"""Simulated devices of `veilcount dev`: pages show a finding before an app has its first user.

Each has a secret of its own, answers if its schedule says so, and randomizes with the device's own
code. Its reports are encoded, decoded and counted like any others, in the period that is running.
Only the values are made up.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import islice
from random import SystemRandom
from typing import Any

from veilcount_serving.errors import SettingsError
from veilcount_shared import Collection, SystemRandomSource
from veilcount_shared.collection import Linkage, Model
from veilcount_shared.domain import (
    Boolean,
    Choice,
    Cross,
    Domain,
    Features,
    Number,
    OpenStrings,
    Questions,
    Several,
)
from veilcount_shared.errors import VeilcountError
from veilcount_shared.report import MAX_REPORTS, Batch, Report
from veilcount_shared.schedule import (
    SECRET_BYTES,
    derive_pseudonym,
    draw_answering_periods,
    draw_slot,
    is_selected,
    period_at,
)
from veilcount_shared.verdict import Verdict
from veilcount_shared.wire import BINARY_TYPE, encode_binary

from ..intake.decode import decode_body
from ..service import Aggregator

MAX_DEVICES = 100_000  # a few seconds for each question
STRINGS = 100

_chance, _randomness = SystemRandom(), SystemRandomSource()


class DevelopmentDevices:
    """Simulated devices, which answer each definition once: in the period that is running."""

    def __init__(self, size: int) -> None:
        self._secrets = [_chance.randbytes(SECRET_BYTES) for _ in range(size)]
        self._answered: set[str] = set()

    def answer(self, aggregator: Aggregator) -> Iterator[tuple[str, str]]:
        """Answer definitions that are new; yield the name of each, and what was counted."""
        if not aggregator.settings.dev:
            fix = "simulated devices answer a development server alone: `veilcount dev --devices N`"
            raise SettingsError("devices", str(len(self._secrets)), fix)
        for fingerprint, series in aggregator.known().catalog.series.items():
            if self._secrets and fingerprint not in self._answered:
                self._answered.add(fingerprint)
                yield series.collection.name, self._answer(aggregator, series.collection)

    def _answer(self, aggregator: Aggregator, collection: Collection) -> str:
        now = aggregator.clock()
        if problem := _unsendable(collection, now):
            return f"no simulated reports: {problem}"
        reports, verdicts = self._reports(collection, now), Counter[Verdict]()
        try:
            while part := tuple(islice(reports, MAX_REPORTS)):
                body = encode_binary(Batch(part))
                verdicts.update(aggregator.take(decode_body(BINARY_TYPE, "", body)))
        except VeilcountError as error:
            return f"{verdicts[Verdict.COUNTED]:,} simulated reports counted, then: {error}"
        size, counted = len(self._secrets), verdicts[Verdict.COUNTED]
        return f"{counted:,} reports of {size:,} simulated devices counted"

    def _reports(self, collection: Collection, now: datetime) -> Iterator[Report]:
        period = period_at(collection, now)
        for secret in self._secrets:
            answers = draw_answering_periods(secret, collection)
            if period in answers and is_selected(secret, collection):
                yield from draw_reports(collection, secret, period)


def _unsendable(collection: Collection, now: datetime) -> str:
    """Return why no device could send a report of a collection right now; empty if one can."""
    if period_at(collection, now) is None:
        return f"its campaign is from {collection.start} until {collection.until}"
    if collection.batch is not None:
        return "its reports travel by shuffler"
    if collection.linkage is Linkage.TOKEN:
        return "each report needs a token of an issuer"
    return ""


def draw_reports(collection: Collection, secret: bytes, period: int) -> Sequence[Report]:
    """Return a device's answers of a period."""
    pseudonym = derive_pseudonym(secret, collection, period, _randomness)
    segment = _chance.randrange(collection.cells)
    return [
        Report(
            collection.fingerprint,
            period,
            segment,
            pseudonym,
            draw_slot(secret, collection, period, answer),
            collection.pack(_message(collection)),
        )
        for answer in range(1 if collection.linkage is Linkage.NONE else collection.per_day)
    ]


def _message(collection: Collection) -> int:
    value = draw_value(collection.domain)
    if collection.model is Model.CENTRAL:
        return collection.reveal(value, _randomness)
    return collection.randomize(value, _randomness)


def draw_value(domain: Domain) -> Any:
    """Draw a value; of a list, the first is the most frequent, then the second, and so on."""
    match domain:
        case Number():
            low, high = float(domain.low), float(domain.high)
            return _chance.triangular(low, high, (2 * low + high) / 3)
        case Cross():
            return tuple(map(draw_value, domain.parts))
        case Boolean() | Choice():
            return domain.labels[_rank(len(domain.labels))]
        case Several():
            labels = enumerate(domain.labels, start=2)
            return [label for rank, label in labels if rank * _chance.random() < 1]
        case Features(features=parts) | Questions(questions=parts):
            return {name: draw_value(part) for name, part in parts}
        case OpenStrings():
            return f"string {_rank(STRINGS)}"


def _rank(size: int) -> int:
    """Draw a place: rank r of n has the share sqrt((r + 1) / n) - sqrt(r / n)."""
    return int(size * _chance.random() ** 2)
