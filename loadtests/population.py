"""A population that answers: what each device holds, what it sends of it, and in which order.

Everything is drawn before the run, so that the generator of the load has nothing left to do but
send. The randomness is seeded: a failed run can be repeated.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from functools import partial
from itertools import groupby
from operator import itemgetter
from random import Random

from veilcount_client.delivery.padded_bodies import encode_padded
from veilcount_client.testing import SeededRandomSource
from veilcount_shared import Collection, RandomSource
from veilcount_shared.collection import Linkage
from veilcount_shared.domain import Boolean
from veilcount_shared.report import Batch, Report
from veilcount_shared.schedule import (
    SECRET_BYTES,
    derive_pseudonym,
    draw_answering_periods,
    draw_slot,
    period_at,
)

from .questions import VALUE_DISTRIBUTIONS

REPLAYED = 0.05  # of all bodies: sent once more
REACH = 64  # a replay comes at most so many sends after: sometimes both are on their way at once


class Intent(StrEnum):
    """Why a body is sent."""

    HONEST = "honest"
    FAKE = "fake"  # reports as good as any, chosen for what they move
    GREEDY = "greedy"  # more answers than the pseudonym has budget for
    OVER_BUDGET = "beyond"  # slots that no pseudonym has
    NONSENSE = "nonsense"  # messages that the design does not have
    FLOOD = "flood"  # pseudonyms that nobody has
    SPREAD = "spread"  # one report for each cell of a large definition
    GARBAGE = "garbage"  # no batch at all


@dataclass(frozen=True, slots=True)
class QueuedReport:
    """What one body carries: reports, mostly under one pseudonym, and what is true of each."""

    collection: Collection
    reports: tuple[Report, ...]
    held: tuple[int, ...]  # the place of the value, or the number
    intent: Intent = Intent.HONEST
    raw: bytes = b""  # in place of an encoded body

    @property
    def body(self) -> bytes:
        """The encoded body, padded as the client pads it."""
        return self.raw or encode_padded(Batch(self.reports))


def draw(
    collections: Mapping[str, Collection], now: datetime, devices: int, seed: int
) -> list[QueuedReport]:
    """Return what so many devices would send by now, shuffled."""
    randomness, chance = SeededRandomSource(seed), Random(seed + 1)
    queued_reports: list[QueuedReport] = []
    for _ in range(devices):
        secret = chance.randbytes(SECRET_BYTES)
        for collection in collections.values():
            queued_reports.extend(of_device(collection, secret, now, randomness, chance))
    chance.shuffle(queued_reports)
    return queued_reports


def order(bodies: int, seed: int, replayed: float = REPLAYED) -> list[int]:
    """Return which body is sent when: each once, some once more a little later."""
    chance = Random(seed)
    again = [
        (body + chance.random() * REACH, body)
        for body in range(bodies)
        if chance.random() < replayed
    ]
    return [body for _, body in sorted([(body, body) for body in range(bodies)] + again)]


def of_device(
    collection: Collection, secret: bytes, now: datetime, randomness: RandomSource, chance: Random
) -> Iterator[QueuedReport]:
    """Yield a device's reports of one question: one queued report for each of its pseudonyms."""
    newest = period_at(collection, now)
    assert newest is not None, "a run is inside of every campaign"
    answers = [
        (period, answer)
        for period in sorted(draw_answering_periods(secret, collection))
        if period <= newest
        for answer in range(collection.per_day)
    ]
    segment = chance.randrange(collection.cells)
    make = partial(report_of, collection, secret, randomness, segment=segment)
    for group in _under_one_pseudonym(collection, answers):
        held = tuple(VALUE_DISTRIBUTIONS[collection.name](chance) for _ in group)
        each = zip(group, held, strict=True)
        reports = tuple(make(place=place, held=value) for place, value in each)
        yield QueuedReport(collection, reports, held)


def _under_one_pseudonym(
    collection: Collection, answers: Sequence[tuple[int, int]]
) -> list[list[tuple[int, int]]]:
    """Return the answers (period, number) that may travel together."""
    if collection.linkage is Linkage.COLLECTION:
        return [list(answers)]
    if collection.linkage is Linkage.NONE:
        return [[answer] for answer in answers]
    return [list(group) for _, group in groupby(answers, key=itemgetter(0))]


def report_of(
    collection: Collection,
    secret: bytes,
    randomness: RandomSource,
    *,
    segment: int,
    place: tuple[int, int],
    held: int,
) -> Report:
    """Return the report of one answer, as the client makes it."""
    period, answer = place
    value = bool(held) if isinstance(collection.domain, Boolean) else held
    return Report(
        fingerprint=collection.fingerprint,
        period=period,
        segment=segment,
        pseudonym=derive_pseudonym(secret, collection, period, randomness),
        slot=draw_slot(secret, collection, period, answer),
        message=collection.pack(collection.randomize(value, randomness)),
    )
