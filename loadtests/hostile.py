"""Attackers: what they send, and what of it an aggregator has to refuse or to bound.

They know the protocol, have no key that devices have not, and mint as many pseudonyms as they like.
Beside what is drawn here, a hostile run replays every other body.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from functools import partial
from operator import itemgetter
from random import Random

from veilcount_analysis.mechanisms import tally
from veilcount_client.testing import SeededRandomSource
from veilcount_shared import Collection, RandomSource
from veilcount_shared.limits import PSEUDONYM_BYTES
from veilcount_shared.schedule import SECRET_BYTES

from .population import Intent, QueuedReport, of_device, report_of
from .questions import FLOODED_NAME, LARGE, VALUE_DISTRIBUTIONS

REPLAYED = 0.5
FAKES = 100  # one device in so many
SPECIMENS = 20  # bodies of each other attack
FLOODED = 2  # times the room of a period
IN_A_BODY = 500
SHARES = 96  # a multiple of the shards that three masters have
#: what fakes push, as far up as one message can
PUSHED = {"autosave": 1, "theme": 40}


def new_pseudonym_limit(devices: int) -> int:
    """Return a limit within which all devices of a run stay, and a flood does not.

    A cluster's shards have equal shares of it, rounded up: here there is nothing to round.
    """
    return -(-(2 * devices + 100) // SHARES) * SHARES


def draw_attack(
    collections: Mapping[str, Collection], now: datetime, devices: int, seed: int
) -> list[QueuedReport]:
    """Return everything that attackers send next to so many honest devices."""
    randomness, chance = SeededRandomSource(seed + 2), Random(seed + 3)
    secrets = [chance.randbytes(SECRET_BYTES) for _ in range(devices // FAKES)]
    fakes = [
        _pushed(queued_report, PUSHED[name], randomness)
        for secret in secrets
        for name in PUSHED
        for queued_report in of_device(collections[name], secret, now, randomness, chance)
    ]
    some = [
        attack(collections, now, randomness, chance)
        for attack in _ATTACKS
        for _ in range(SPECIMENS)
    ]
    flood = _flood(
        collections[FLOODED_NAME], new_pseudonym_limit(devices) * FLOODED, randomness, chance
    )
    attack = [*fakes, *some, *flood, *_spread(collections[LARGE], randomness, chance)]
    chance.shuffle(attack)
    return attack


def mixed(honest: list[QueuedReport], attack: list[QueuedReport]) -> list[QueuedReport]:
    """Return both: the attack is spread over the first half, so that a slow run has seen it all."""
    step = len(honest) / len(attack) / 2
    places = [(place * step, queued_report) for place, queued_report in enumerate(attack)]
    places += enumerate(honest)
    return [queued_report for _, queued_report in sorted(places, key=itemgetter(0))]


def _pushed(queued_report: QueuedReport, target: int, randomness: RandomSource) -> QueuedReport:
    """Return the queued report with messages that all support one value [CJG21]."""
    make = partial(_supporting, queued_report.collection, target, randomness)
    reports = tuple(replace(report, message=make()) for report in queued_report.reports)
    return replace(queued_report, reports=reports, intent=Intent.FAKE)


def _supporting(collection: Collection, target: int, randomness: RandomSource) -> bytes:
    value = bool(target) if collection.inputs == 2 else target
    while True:
        message = collection.randomize(value, randomness)
        if tally(collection, [message])[target]:
            return collection.pack(message)


def _greedy(
    collections: Mapping[str, Collection], now: datetime, randomness: RandomSource, chance: Random
) -> QueuedReport:
    """Every day of the campaign, though the person has but some: the first are in budget."""
    collection, secret = collections["autosave"], chance.randbytes(SECRET_BYTES)
    every = range(collection.periods)
    held = tuple(VALUE_DISTRIBUTIONS[collection.name](chance) for _ in every)
    make = partial(report_of, collection, secret, randomness, segment=0)
    reports = tuple(make(place=(day, 0), held=held[day]) for day in every)
    return QueuedReport(collection, reports, held, Intent.GREEDY)


def _over_budget(
    collections: Mapping[str, Collection], now: datetime, randomness: RandomSource, chance: Random
) -> QueuedReport:
    """Slots above the period's."""
    whole = _one(collections["minutes"], now, randomness, chance)
    slots = whole.collection.per_day
    reports = tuple(replace(report, slot=report.slot + slots) for report in whole.reports)
    return replace(whole, reports=reports, intent=Intent.OVER_BUDGET)


def _nonsense(
    collections: Mapping[str, Collection], now: datetime, randomness: RandomSource, chance: Random
) -> QueuedReport:
    """All bits of the message set."""
    whole = _one(collections["plugin"], now, randomness, chance)
    wide = b"\xff" * whole.collection.message_bytes
    reports = tuple(replace(report, message=wide) for report in whole.reports)
    return replace(whole, reports=reports, intent=Intent.NONSENSE)


def _garbage(
    collections: Mapping[str, Collection], now: datetime, randomness: RandomSource, chance: Random
) -> QueuedReport:
    """A body cut short, with a bit turned, or of noise."""
    whole = _one(collections["minutes"], now, randomness, chance)
    body = bytearray(whole.body)
    broken = chance.choice(
        [bytes(body[: len(body) // 2]), bytes([body[0] ^ 1]) + body[1:], chance.randbytes(2_000)]
    )
    return QueuedReport(whole.collection, (), (), Intent.GARBAGE, raw=broken)


_ATTACKS: tuple[
    Callable[[Mapping[str, Collection], datetime, RandomSource, Random], QueuedReport], ...
]
_ATTACKS = (_greedy, _over_budget, _nonsense, _garbage)


def _one(
    collection: Collection, now: datetime, randomness: RandomSource, chance: Random
) -> QueuedReport:
    secret = chance.randbytes(SECRET_BYTES)
    return next(iter(of_device(collection, secret, now, randomness, chance)))


def _flood(
    flooded: Collection, pseudonyms: int, randomness: RandomSource, chance: Random
) -> Iterator[QueuedReport]:
    """Yield bodies that are full of pseudonyms that nobody has."""
    make = partial(
        report_of, flooded, bytes(SECRET_BYTES), randomness, segment=0, place=(0, 0), held=0
    )
    for first in range(0, pseudonyms, IN_A_BODY):
        fresh = (chance.randbytes(PSEUDONYM_BYTES) for _ in range(first, pseudonyms)[:IN_A_BODY])
        reports = tuple(replace(make(), pseudonym=each) for each in fresh)
        yield QueuedReport(flooded, reports, (0,) * len(reports), Intent.FLOOD)


def _spread(large: Collection, randomness: RandomSource, chance: Random) -> Iterator[QueuedReport]:
    """Yield one report for each cell of a large definition: as many tallies as there can be."""
    for period in range(large.periods):
        for segment in range(large.cells):
            secret = chance.randbytes(SECRET_BYTES)
            one = report_of(large, secret, randomness, segment=segment, place=(period, 0), held=0)
            yield QueuedReport(large, (one,), (0,), Intent.SPREAD)
