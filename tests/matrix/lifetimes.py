"""A whole life through the real client, for every outcome of its randomizers' draws.

So the exact distribution of what leaves a device in its life: all messages, by question and period.
The ratio of two streams' probabilities of one transcript is what the epsilon of the user bounds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from fractions import Fraction
from typing import Any
from unittest.mock import patch

from veilcount_client.delivery.transport import Delivered, Outcome
from veilcount_shared import Collection, RandomSource, schedule
from veilcount_shared.mechanisms import TrendMechanism
from veilcount_shared.verdict import Verdict
from veilcount_shared.wire import decode_binary

from ..client.device_fixtures import HOUR, MINUTE, Device, clock_at, device_in_memory
from ..client.privacy.paired_runs import ConstantSource
from ..enumeration import enumerate_distribution
from .cells import VALUES, Combination, definitions
from .networks import NETWORKS, Endpoints
from .parties import Issuer, Logs
from .simulation import SETTINGS, Calendar, Plant, calendar_of, simulated_time

ANSWERS = 2  # in a life
MOST_MESSAGES = 6  # of a mechanism: a life of larger ones has too many outcomes
JITTER_WORD = 1 << 62
Transcript = tuple[tuple[str, int, bytes], ...]  # question, period and message
Visit = tuple[float, int | None]  # steps after the beginning; which value, or none
Stream = Sequence[Visit]

#: the first day after a campaign of two periods; with tokens, of three
ENDS = {
    "event": ("2026-12-03", "2026-12-04"),
    "day": ("2026-12-03", "2026-12-04"),
    "week": ("2026-12-21", "2026-12-28"),
    "month": ("2027-02-01", "2027-03-01"),
    "user": ("2026-12-05", "2026-12-05"),
}
EARLY, LATE = 0.0001, 0.99  # of a step: all but always before, and mostly after, an instant
#: a return and none: a visit after the first absence was drawn, and one early in the next period
RETURNS: tuple[Stream, Stream] = ([(LATE, 0), (1 + EARLY, 0)], [(1 + EARLY, 0)])


def short_definitions(combination: Combination) -> dict[str, Collection]:
    """Return a question that is answered twice, or once in a life; of a group all members."""
    is_token = combination.linkage == "token"
    more = {"until": ENDS[combination.unit][is_token]}
    if is_token:
        more["answers"] = ANSWERS  # type: ignore[assignment] # a number among dates
    return definitions(combination, "it", **more)


def epsilon_of_life(combination: Combination) -> Fraction:
    """Return what a user is promised, whichever question of a group was drawn."""
    (epsilon,) = {each.epsilon_user for each in short_definitions(combination).values()}
    return epsilon


def is_enumerable(combination: Combination) -> bool:
    """Whether a life has few enough outcomes, and two streams that only a value tells apart.

    Where presence is public, whether somebody came back shows in who reports, not in a value.
    """
    if combination.measure == "returning" and combination.presence == "public":
        return False
    questions = short_definitions(combination).values()
    return all(each.randomizer.messages <= MOST_MESSAGES for each in questions)


def neighbours(combination: Combination) -> list[tuple[Stream, Stream]]:
    """Return pairs of streams that a promise makes hard to tell apart."""
    steps = range(ANSWERS + (combination.linkage == "token"))
    one, other = ([(step + EARLY, value) for step in steps] for value in (0, 1))
    if combination.measure == "returning":  # all visits have one value
        return [(one, []), *([RETURNS] if combination.linkage != "token" else [])]
    return [(one, other), (one, [])] if combination.presence == "hidden" else [(one, other)]


def distribution(
    combination: Combination, stream: Stream, plant: Plant = nullcontext
) -> dict[Transcript, Fraction]:
    """Return the probability of every transcript of a life."""
    calendar = calendar_of(short_definitions(combination))
    with plant(), simulated_time(calendar):
        return enumerate_distribution(lambda source: _transcript(combination, stream, source))


def max_ratio(one: Mapping[Transcript, Fraction], other: Mapping[Transcript, Fraction]) -> Fraction:
    """Return the largest ratio of the two probabilities of one transcript, in either direction."""
    assert one.keys() == other.keys(), "a transcript that only one of two streams can have"
    ratios = (one[transcript] / other[transcript] for transcript in one)
    return max(max(ratio, 1 / ratio) for ratio in ratios)


def _transcript(combination: Combination, stream: Stream, source: RandomSource) -> Transcript:
    collections = short_definitions(combination)
    calendar = calendar_of(collections)
    clock = clock_at(calendar.at(0) - HOUR)
    sent: list[tuple[str, int, bytes]] = []

    def answer(body: bytes, _reports: int) -> Outcome:
        reports = decode_binary(body).reports
        sent.extend((report.fingerprint, report.period, report.message) for report in reports)
        return Delivered((Verdict.COUNTED,) * len(reports))

    network = NETWORKS[combination.route](Endpoints(clock, collections.values(), answer))
    options: dict[str, Any] = {
        **network.options,
        "issuer": Issuer(Logs(combination, calendar), 0, clock.now, denies=False),
        "randomness": ConstantSource(JITTER_WORD),
    }
    with (
        drawing_from(source),
        device_in_memory(
            "a person", collections, clock, minute=MINUTE, **options, **SETTINGS
        ) as device,
    ):
        _live(device, stream, calendar, VALUES[combination.measure])
    return tuple(sorted(sent))


def _live(device: Device, stream: Stream, calendar: Calendar, values: Sequence[object]) -> None:
    """Record what the stream says, over a restart in the middle of the life."""
    visits = sorted([*stream, (1.0, None)], key=lambda visit: visit[0])
    for step, place in visits:
        device.run_until(calendar.at(step))
        if place is None:
            device.restart()
        else:
            for name in device.collections:
                device.client.record(name, values[place])
        device.work()
    device.run_until(calendar.last_sent + 2 * HOUR)
    device.stop()


@contextmanager
def drawing_from(source: RandomSource) -> Iterator[None]:
    """Have every randomizer draw from a source; of a trend, its level and signs as well."""
    randomize, absent = Collection.randomize, Collection.randomize_absent
    report, states = TrendMechanism.report, dict[str, Any]()

    def draw_trend(_secret: bytes, collection: Collection) -> Any:
        mechanism: Any = collection.mechanism
        if collection.fingerprint not in states:
            states[collection.fingerprint] = mechanism.draw_state(source)
        return states[collection.fingerprint]

    with ExitStack() as stack:
        for owner, name, function in (
            (
                Collection,
                "randomize",
                lambda collection, value, _: randomize(collection, value, source),
            ),
            (Collection, "randomize_absent", lambda collection, _: absent(collection, source)),
            (
                TrendMechanism,
                "report",
                lambda trend, state, value, _: report(trend, state, value, source),
            ),
            (schedule, "draw_trend", draw_trend),
        ):
            stack.enter_context(patch.object(owner, name, function))
        yield
