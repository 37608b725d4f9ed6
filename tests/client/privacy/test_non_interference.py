"""Promise 2 (b): that, when and how many reports leave depends only on what is declared public.

Every randomizer is a constant here, so whatever still differs between two runs was shown by the
client and not by a mechanism. Two streams that a promise makes equal are run through the
whole client, in time, with the same randomness; every attempt to send is compared, to the byte and
the instant. The same checker is shown to see planted bugs.
"""

from __future__ import annotations

import math
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from veilcount_client.delivery.uploader import Uploader
from veilcount_client.delivery.worker import GATHER
from veilcount_client.recording import answer_drawing
from veilcount_client.recording import recorder as answering
from veilcount_client.recording.answer_drawing import AnswerDrawer, PersonAnswer
from veilcount_client.recording.recorder import RecordCall, Recorder
from veilcount_client.state import DrawOutcome
from veilcount_client.state.losses import Loss
from veilcount_client.state.sqlite import SqliteState
from veilcount_shared import Collection, RandomSource, SystemRandomSource
from veilcount_shared.domain import Boolean
from veilcount_shared.errors import DefinitionError

from ..device_fixtures import (
    HOUR,
    MINUTE,
    Device,
    Wire,
    at,
    clock_at,
    file,
    minutes_of,
    number,
    one_collection,
    pass_time,
    quick,
    secrets,
)
from .paired_runs import ConstantSource, constant_randomizers, coupled

COINS = (1 << 62, 3 << 61)  # two ways in which all the uploader's jitter may fall
FIRST, LAST = at(0, 7), at(4, 12)
Emission = tuple[float, bytes]


@dataclass(frozen=True)
class Stream:
    """What a person does, as the client hears of it."""

    records: tuple[tuple[float, str, object, Mapping[str, object]], ...] = ()

    def __add__(self, other: Stream) -> Stream:
        """Return both."""
        return Stream(self.records + other.records)


@dataclass(frozen=True)
class Life:
    """What happens to the device, whatever its person does."""

    name: str
    events: tuple[tuple[float, str], ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        """Return its name, for pytest."""
        return self.name


def recording(name: str, *values: object, hours: float = 9, **segments: object) -> Stream:
    """Record a value every day, at the same hour."""
    return Stream(
        tuple((at(day, hours), name, value, segments) for day, value in enumerate(values))
    )


def at_once(name: str, day: float, hours: Sequence[float], *values: object) -> Stream:
    """Record values in the course of one day."""
    return Stream(
        tuple((at(day, hour), name, each, {}) for hour, each in zip(hours, values, strict=True))
    )


LIVES = (
    Life("nothing happens"),
    Life("flushed often", tuple((at(day, hour), "flush") for day in range(4) for hour in (9, 15))),
    Life("restarted", tuple((at(day, 12.3), "restart") for day in range(4))),
    Life("closed for two days", ((at(1, 10), "stop"), (at(3, 10.27), "start"))),
    Life("closed every night", tuple(
        (at(day, hour), verb) for day in range(4) for hour, verb in ((8.5, "start"), (10, "stop"))
    )),
    Life("crashed", (
        (at(1, 9.2), "crash"), (at(1, 9.4), "start"), (at(2, 20), "crash"), (at(3, 1), "start"),
    )),
    Life("forked", ((at(0, 9.1), "fork"), (at(2, 9.3), "fork"))),
    Life("offline for a day", ((at(0, 22), "offline"), (at(2, 1), "online"))),
    Life("offline and restarted", (
        (at(0, 22), "offline"), (at(1, 5), "stop"), (at(2, 1), "online"), (at(2, 2), "start"),
    )),
    Life("shut by the server", ((at(1, 12), "shut"), (at(2, 20), "restart"))),
)  # fmt: skip


def emissions(
    collections: Mapping[str, Collection],
    stream: Stream,
    life: Life = LIVES[0],
    *,
    word: int = COINS[0],
    until: float = LAST,
    lazy: bool = False,
    minute: float = 10 * MINUTE,
    plant: Callable[[], AbstractContextManager[object]] = nullcontext,
) -> list[Emission]:
    """Return all that leaves a device: the instant and the bytes of each attempt.

    Its thread looks for absences every ten minutes instead of every one, which takes a tenth of the
    time; one test runs with the true minute.
    """
    events = [(instant, 0, verb, ()) for instant, verb in life.events]
    events += [(each[0], 1, "record", each[1:]) for each in stream.records]  # type: ignore[misc] # a record is told what it records
    clock = clock_at(FIRST)
    wire = Wire(clock)
    with (
        tempfile.TemporaryDirectory(dir=quick()) as place,
        secrets("a person"),
        constant_randomizers(),
        coupled(1),
        minutes_of(minute),
        plant(),
    ):
        device = Device(
            Path(place),
            collections,
            clock,
            wire,
            randomness=ConstantSource(word),
            lazy=lazy,
            **life.options,
        )
        ordered = sorted(events, key=lambda each: each[:2])
        following = [*(instant for instant, *_ in ordered[1:]), until]
        for (instant, _, verb, given), then in zip(ordered, following, strict=False):
            pass_time(clock, instant, device)
            _happen(device, wire, verb, given)
            if then > instant + GATHER:
                device.work()
        pass_time(clock, until, device)
        if device.runs:
            device.stop()
    closed = [(instant, f"{series} {row}".encode()) for instant, series, row in wire.closed]
    return [(each.instant, each.body) for each in wire.attempts] + closed


def _happen(device: Device, wire: Wire, verb: str, given: Sequence[Any]) -> None:
    if verb == "record":
        if device.runs:
            name, value, segments = given
            device.client.record(name, value, **segments)
    elif verb in {"offline", "online", "shut"}:
        getattr(wire, verb)()
    elif verb == "flush":
        device.client.flush()
    elif verb in {"consent", "withdraw"}:
        device.client.consent(verb == "consent")
    elif verb == "forget":
        device.client.forget()
    elif not (verb == "start" and device.runs):
        getattr(device, verb)()


def some(names: Iterable[str], life: Life, number: int) -> list[str]:
    """Return so many of these, others for each life: over all lives each comes up as often."""
    listed, first = list(names), LIVES.index(life) * number
    return [listed[(first + place) % len(listed)] for place in range(number)]


def reports_of(collection: Collection, emitted: Iterable[Emission]) -> list[Emission]:
    """Return those bodies that carry reports of one collection."""
    name = bytes.fromhex(collection.fingerprint)
    return [each for each in emitted if name in each[1]]


# -- hidden presence -------------------------------------------------------------------------------

HIDDEN = file(
    mood={"values": ["good", "bad"], "presence": "hidden"},
    click={"unit": "event", "per_day": 4, "presence": "hidden"},
    alone={"unit": "event", "per_day": 2, "presence": "hidden", "linkage": "none"},
    latest={"values": ["a", "b", "c"], "takes": "last", "presence": "hidden"},
    ever={"takes": "any", "held": "process", "presence": "hidden", "unit": "week"},
    seldom={"presence": "hidden", "answers": 5},
    monthly={"presence": "hidden", "unit": "month", "answers": 1},
    linked={"presence": "hidden", "linkage": "collection"},
)
DAYS = 4
NEVER = Stream()
ACTIVE = {
    "always": sum((recording(name, *[True] * DAYS) for name in HIDDEN), NEVER),
    "early": sum((recording(name, *[True] * DAYS, hours=0.2) for name in HIDDEN), NEVER),
    "once": sum((recording(name, True) for name in HIDDEN), NEVER),
    "on some days": recording("mood", "good", hours=23.9) + recording("linked", True, False),
    "far too often": sum(
        (at_once(name, day, [9 + n / 10 for n in range(9)], *[True] * 9)
         for name in HIDDEN for day in range(DAYS)), NEVER,
    ),
    "with values of no kind": sum(
        (recording(name, object(), math.nan, "?", None) for name in HIDDEN), NEVER
    ),
}  # fmt: skip


@pytest.mark.parametrize("life", LIVES, ids=repr)
def test_hidden_presence_shows_nothing_of_what_was_recorded(life: Life) -> None:
    """Where presence is hidden, all that leaves is what would leave of someone idle."""
    shows_nothing(life, some(ACTIVE, life, 2))


@pytest.mark.full
@pytest.mark.parametrize("life", LIVES, ids=repr)
def test_hidden_presence_shows_nothing_in_any_life_of_any_stream(life: Life) -> None:
    """The same of every stream in every life."""
    shows_nothing(life, list(ACTIVE))


def shows_nothing(life: Life, streams: Sequence[str]) -> None:
    """Assert that someone active in these ways leaves what someone idle does."""
    idle = emissions(HIDDEN, NEVER, life)

    assert idle
    for name in streams:
        assert emissions(HIDDEN, ACTIVE[name], life) == idle, name


def test_hidden_presence_shows_nothing_to_the_minute() -> None:
    """The same holds with the true minute, at which a thread looks for absences."""
    collections = {name: HIDDEN[name] for name in ("mood", "click")}
    idle = emissions(collections, NEVER, minute=MINUTE, until=at(2))
    busy = sum((recording(name, 1, 1, hours=0.2) for name in collections), NEVER)

    assert idle
    assert emissions(collections, busy, minute=MINUTE, until=at(2)) == idle


def test_hidden_presence_sends_exactly_the_periods_number_of_answers() -> None:
    """Someone idle sends as many answers as the definition says, one a slot."""
    idle = emissions(HIDDEN, NEVER, until=at(5))

    for name, daily in {"mood": 1, "click": 4, "alone": 2, "latest": 1, "linked": 1}.items():
        sent = reports_of(HIDDEN[name], idle)
        assert sum(_count(body) for _, body in sent) == 5 * daily, name


def _count(body: bytes) -> int:
    from veilcount_shared.wire import decode_binary  # noqa: PLC0415

    return len(decode_binary(body).reports)


def test_losses_of_hidden_presence_are_not_reported() -> None:
    """A long absence ages recorded answers, and not undrawn absences: neither is reported."""
    collections = one_collection("mood", presence="hidden", late=1)
    life = Life("closed for long", ((at(0, 10), "stop"), (at(8, 10), "start")))
    stream = recording("mood", True, hours=9)

    assert emissions(collections, stream, life, until=at(10)) == emissions(
        collections, NEVER, life, until=at(10)
    )


# -- values ----------------------------------------------------------------------------------------

PUBLIC = file(
    first={"values": ["a", "b", "c"]},
    open={"values": ["a", "b"], "other": "else"},
    many={"values": [f"v{place}" for place in range(300)]},
    event={"unit": "event", "per_day": 3},
    alone={"unit": "event", "per_day": 2, "linkage": "none"},
    last={"takes": "last"},
    any={"takes": "any"},
    most={"range": [0, 100], "measure": "mean", "takes": "max"},
    sum={"range": [0, 100], "measure": "distribution", "takes": "sum"},
    weekly={
        "range": [0, 100],
        "measure": "mean",
        "unit": "week",
        "takes": "max",
        "held": "process",
    },
    monthly={"unit": "month"},
    user={"unit": "user", "takes": "last", "held": "process"},
    drawn={"answers": 10},
    arm={"segments": {"arm": ["A", "B"]}, "takes": "any"},
    true={"model": "central", "budget": 1},
)
HOURS = (9, 9.2, 10.5, 18, 23.9)
VALUES: dict[str, tuple[object, ...]] = {
    "one value": (True,) * 5,
    "another": (False,) * 5,
    "a change in the middle of the day": (True, True, False, False, True),
    "rising": (1, 2, 3, 4, 5),
    "falling": (5, 4, 3, 2, 1),
    "the largest first": (math.inf, 0, 0, -1, 0),
    "not a number": (math.nan, 3, math.nan, 2, 1),
    "out of the domain": ("?", -(10**30), b"", object(), None),
    "of different kinds": ("a", 1, "c", True, {}),
}
OTHERS = [name for name in VALUES if name != "one value"]


def doing(values: Sequence[object]) -> Stream:
    """Record these values in every public collection, every day, at the same hours."""
    streams = [at_once(name, day, HOURS, *values) for day in range(DAYS) for name in PUBLIC]
    arms = {name: [("A", "B")[n % 2] for n in range(len(HOURS))] for name in ("arm",)}
    return Stream(
        tuple(
            (instant, name, value, {"arm": arms["arm"][place % len(HOURS)]} if name in arms else {})
            for stream in streams
            for place, (instant, name, value, _) in enumerate(stream.records)
        )
    )


@pytest.mark.parametrize("life", LIVES, ids=repr)
def test_no_value_shows_in_what_leaves(life: Life) -> None:
    """Streams with the same times and other values leave the same bytes at the same instants."""
    shows_no_value(life, some(OTHERS, life, 2))


@pytest.mark.full
@pytest.mark.parametrize("life", LIVES, ids=repr)
def test_no_value_shows_in_any_life_of_any_values(life: Life) -> None:
    """The same of all values in every life, and of two runs of the same ones."""
    shows_no_value(life, list(VALUES))


def shows_no_value(life: Life, named: Sequence[str]) -> None:
    """Assert that these values leave what the usual ones do."""
    life = replace(life, options={"trust_curator": True})
    usual = emissions(PUBLIC, doing(VALUES["one value"]), life)

    assert usual
    for name in named:
        assert emissions(PUBLIC, doing(VALUES[name]), life) == usual, name


def test_no_value_shows_however_the_jitter_falls() -> None:
    """The uploader's randomness change when things leave, alike for all values."""
    one, other = ([emissions(PUBLIC, doing(VALUES[name]), LIVES[7], word=word) for word in COINS]
                  for name in ("rising", "falling"))  # fmt: skip

    assert one == other
    assert one[0] != one[1]


# -- public presence: what differs is what is declared ---------------------------------------------


def test_public_presence_shows_that_and_when_and_nothing_else() -> None:
    """Between never and always differ the reports of the periods with a record, within the hour."""
    collections = file(a={}, b={}, c={"presence": "hidden"})
    others = recording("b", True, False, True)
    idle = emissions(collections, others)
    active = emissions(collections, others + recording("a", True, True, True, hours=14))
    of_a = reports_of(collections["a"], active)

    assert [each for each in active if each not in of_a] == idle
    assert [int((instant - at(0, 14)) // (24 * HOUR)) for instant, _ in of_a] == [0, 1, 2]
    assert all((instant - at(0, 14)) % (24 * HOUR) <= HOUR for instant, _ in of_a)


def test_events_show_their_number_and_nothing_else() -> None:
    """Of 0 and 4 events a day, each event within the cap is one report; the fifth is none."""
    collections = file(event={"unit": "event", "per_day": 4}, other={})
    none, four, five = (
        emissions(
            collections,
            sum((at_once("event", day, range(8, 8 + n), *[True] * n) for day in (1, 2)), NEVER)
            + recording("other", True, True),
        )
        for n in (0, 4, 5)
    )
    events = reports_of(collections["event"], four)

    assert len(events) == 8
    assert [each for each in four if each not in events] == none
    assert five == four


def test_only_the_first_record_of_a_period_shows() -> None:
    """A frozen answer is not drawn again: later records of its period leave nothing."""
    collections = file(day={}, week={"unit": "week"}, month={"unit": "month"})
    once = sum((recording(name, True) for name in collections), NEVER)
    often = once + sum(
        (at_once(each, day, HOURS[1:], 1, 0, 1, 0) for each in ("week", "month") for day in (0, 3)),
        at_once("day", 0, HOURS[1:], 1, 0, 1, 0),
    )  # fmt: skip
    for life in LIVES:
        assert emissions(collections, often, life) == emissions(collections, once, life), life


def test_a_segment_is_the_latest_records_and_not_that_of_the_value_that_stays() -> None:
    """Which arm an answer names does not depend on which of the values was the largest."""
    collections = one_collection(
        "most", range=[0, 9], measure="mean", takes="max", segments={"arm": ["A", "B"]}
    )

    def stream(*values: object) -> Stream:
        return Stream(
            tuple(
                (at(2, 1, place), "most", value, {"arm": arm})
                for place, (value, arm) in enumerate(zip(values, "AB", strict=True))
            )
        )

    assert emissions(collections, stream(9, 1)) == emissions(collections, stream(1, 9))


# -- one collection and another --------------------------------------------------------------------


@pytest.mark.parametrize("life", LIVES[:7], ids=repr)
def test_a_collections_reports_do_not_depend_on_another(life: Life) -> None:
    """Whatever is done with A, the bodies of B are the same, at the same instants."""
    collections = file(
        a={"unit": "event", "per_day": 30},
        many={"unit": "event", "per_day": 30, "linkage": "none"},
        b={},
        shown={"takes": "last"},
        kept={"presence": "hidden"},
    )
    others = recording("b", True, True, True) + recording("shown", True, True, True)
    busy = others + sum(
        (at_once(name, day, [n / 2 for n in range(48)], *[n % 3 for n in range(48)])
         for name in ("a", "many") for day in range(DAYS)), NEVER,
    )  # fmt: skip
    idle_run, busy_run = emissions(collections, others, life), emissions(collections, busy, life)

    assert len(busy_run) > len(idle_run) + 50
    for name in ("b", "shown", "kept"):
        assert reports_of(collections[name], busy_run) == reports_of(collections[name], idle_run)


def test_an_outage_is_felt_by_all_collections_alike_and_hidden_presence_shows_nothing_then() -> (
    None
):
    """In an outage all wait together; what a hidden collection records does not change when."""
    collections = file(a={}, kept={"presence": "hidden"})
    others = recording("a", True, True, True)
    busy = others + recording("kept", True, True, True)
    for life in LIVES[7:]:
        assert emissions(collections, busy, life) == emissions(collections, others, life)


# -- what does not wait for a record, and what a withdrawal does not show -----------------


def test_hidden_presence_does_not_wait_for_a_record_to_begin() -> None:
    """Absences leave of someone who never records anything, restarts included."""
    collections = one_collection("mood", presence="hidden")
    idle = emissions(collections, NEVER, LIVES[2], lazy=True)

    assert emissions(collections, recording("mood", 1, 1, 1), LIVES[2], lazy=True) == idle


def test_a_backlog_does_not_wait_for_another_collections_record() -> None:
    """What is stored leaves after a restart whether or not anything else is recorded."""
    collections = file(a={}, b={})
    life = Life("restarted at once", ((at(0, 9, 1), "restart"),))
    idle = recording("b", True)
    busy = idle + recording("a", True, True, hours=10)
    one, other = (emissions(collections, each, life, lazy=True) for each in (idle, busy))

    assert reports_of(collections["b"], one) == reports_of(collections["b"], other)


@pytest.mark.parametrize("verb", ["withdraw", "forget"])
def test_a_withdrawal_taken_back_does_not_show_hidden_presence(verb: str) -> None:
    """After a withdrawal within a period, someone who recorded before it sends what others send."""
    collections = one_collection("mood", presence="hidden")
    life = Life("thinks again", ((at(1, 0.1), verb), (at(1, 0.2), "consent")))
    stream = recording("mood", True, True, hours=0.05)

    assert emissions(collections, stream, life) == emissions(collections, NEVER, life)


def test_a_person_who_was_forgotten_shows_nothing_after_a_new_consent() -> None:
    """Days after a return, another consent in the middle of a period closes no open answer."""
    collections = one_collection("mood", presence="hidden")
    life = Life(
        "asked again",
        ((at(0, 7.1), "forget"), (at(0, 7.2), "consent"), (at(2, 0.1), "consent")),
    )
    stream = recording("mood", True, True, True, hours=0.05)

    assert emissions(collections, stream, life) == emissions(collections, NEVER, life)


def test_hidden_presence_of_many_persons_does_not_wait_for_a_record(tmp_path: Path) -> None:
    """After a restart, absences of persons who consented earlier need no record to leave."""
    clock = clock_at(FIRST)
    device = Device(
        tmp_path,
        one_collection("mood", presence="hidden"),
        clock,
        Wire(clock),
        persons=True,
        consent=None,
    )
    device.client.person(1).consent(True)
    pass_time(clock, at(0, 8), device)
    device.client.flush()
    device.lazy = True
    device.restart()

    assert device.awake


def test_hidden_presence_with_segments_is_refused() -> None:
    """An absence has no segment to name: the first one would give it away."""
    with pytest.raises(DefinitionError):
        one_collection("mood", presence="hidden", segments={"arm": ["A", "B"]})


# -- planted bugs ----------------------------------------------------------------------------------


def forgets_used() -> AbstractContextManager[object]:
    """Wrong: a restart forgets what was answered, and draws again."""
    original = SqliteState.__init__

    def opening(state: SqliteState, place: str) -> None:
        original(state, place)
        with state._writing() as database:
            database.execute("delete from used")
            database.execute("delete from ledger")

    return patch.object(SqliteState, "__init__", opening)


def redraws_daily() -> AbstractContextManager[object]:
    """Wrong: a month's answer is drawn again on another day, with all the spend it takes."""
    original = answer_drawing._next_answer

    def fresh(used: tuple[int, int], answer: PersonAnswer) -> int | None:
        today = answer.at // (24 * HOUR)
        known = last.setdefault(answer.collection.name, today)
        last[answer.collection.name] = today
        return 0 if known != today else original(used, answer)

    last: dict[str, float] = {}
    return _all(
        patch.object(answer_drawing, "_next_answer", fresh),
        patch("veilcount_client.state.sqlite_commit.spend", lambda *_: DrawOutcome.STORED),
    )


def hurries_the_hidden() -> AbstractContextManager[object]:
    """Wrong: a flush takes hidden reports along."""
    original = AnswerDrawer._times

    def hurried(answers: AnswerDrawer, answer: PersonAnswer, number: int) -> tuple[float, float]:
        return answer.at, original(answers, answer, number)[1]

    return patch.object(AnswerDrawer, "_times", hurried)


def skips_what_it_does_not_know() -> AbstractContextManager[object]:
    """Wrong: a value outside the domain makes no report."""
    original = Recorder._answer

    def picky(answers: Recorder, record: RecordCall) -> PersonAnswer | Loss:
        if isinstance(record.collection.domain, Boolean) and record.value not in {True, False}:
            return Loss.UNKNOWN
        return original(answers, record)

    return patch.object(Recorder, "_answer", picky)


def sends_absences_at_once() -> AbstractContextManager[object]:
    """Wrong: an absence leaves when it is drawn, a minute before a recorded answer would."""
    original = AnswerDrawer._times

    def prompt(answers: AnswerDrawer, answer: PersonAnswer, number: int) -> tuple[float, float]:
        earliest, send_at = original(answers, answer, number)
        return (earliest - MINUTE, send_at - MINUTE) if answer.absent else (earliest, send_at)

    return patch.object(AnswerDrawer, "_times", prompt)


def forgets_absences() -> AbstractContextManager[object]:
    """Wrong: periods in which the app did not run are not caught up."""
    original = Recorder._missing

    def today(answers: Recorder, *given: Any) -> Iterator[PersonAnswer]:
        for each in original(answers, *given):
            if at(each.period + 1) > given[-1]:
                yield each

    return patch.object(Recorder, "_missing", today)


def keeps_the_time_of_the_largest() -> AbstractContextManager[object]:
    """Wrong, and once so: of two records, the one whose value stays says when."""

    def merged(held: PersonAnswer, new: PersonAnswer) -> PersonAnswer:
        return new if new.value > held.value else held  # type: ignore[operator] # numbers, here

    return patch.object(answering, "_merged", merged)


def copies_the_queue() -> AbstractContextManager[object]:
    """Wrong: a forked child stores what its parent recorded, too."""

    def fork(device: Device) -> None:
        queue = list(device.worker._queue)
        device.worker.store()
        device.worker.after_fork()
        device.worker._queue.extend(queue)

    return patch.object(Device, "fork", fork)


def tells_hidden_losses() -> AbstractContextManager[object]:
    """Wrong, and once so: what aged in the outbox is reported; absences would not have aged."""
    from veilcount_client.delivery import loss_reports  # noqa: PLC0415

    return patch.object(loss_reports, "Presence", type("Presence", (), {"HIDDEN": "never"}))


def spreads_before_it_sweeps() -> AbstractContextManager[object]:
    """Wrong, and once so: after a restart stored answers get new times, fresh absences do not."""
    original = Device.start

    def start(device: Device, *given: Any) -> None:
        original(device, *given)
        now, state = device.clock.now(), device.worker.state
        late = state.overdue(now - 1, math.inf, 1000)
        state.reschedule({number: now + 60 * number for number in late})

    return _all(
        patch.object(Device, "start", start),
        patch.object(Uploader, "_postpone", lambda *_: None),
    )


def closes_to_absences_alone() -> AbstractContextManager[object]:
    """Wrong: of a closed row no absence is drawn any more, but what is recorded is, and leaves."""

    def missing(answers: Recorder, *given: Any) -> Iterator[PersonAnswer]:
        return iter(()) if heard else original(answers, *given)

    def keep(*given: Any) -> None:
        heard.append(given)

    heard: list[object] = []
    original = Recorder._missing
    return _all(
        patch.object(SqliteState, "close_row", keep), patch.object(Recorder, "_missing", missing)
    )


@contextmanager
def _all(*patches: AbstractContextManager[object]) -> Iterator[None]:
    with ExitStack() as stack:
        for each in patches:
            stack.enter_context(each)
        yield


TWICE = at_once("month", 0, [9], True), at_once("month", 0, [9], True) + at_once("month", 1, [9], 1)
HIDDEN_PAIR = recording("mood", 1, 1, 1, 1, hours=0.2), NEVER
MONTH = one_collection("month", unit="month")
MOOD = one_collection("mood", presence="hidden")
MOST = one_collection("most", range=[0, 9], measure="mean", takes="max")
PLANTED = {
    "redraw on restart": (forgets_used, MONTH, *TWICE, LIVES[2]),
    "daily redraw": (redraws_daily, MONTH, *TWICE, LIVES[0]),
    "early send": (hurries_the_hidden, MOOD, *HIDDEN_PAIR, LIVES[1]),
    "skipped for its value": (
        skips_what_it_does_not_know,
        one_collection("first"),
        recording("first", True, True),
        recording("first", True, "?"),
        LIVES[0],
    ),
    "absent at another instant": (sends_absences_at_once, MOOD, *HIDDEN_PAIR, LIVES[0]),
    "absences of closed days missing": (
        forgets_absences,
        MOOD,
        recording("mood", 1, 1, hours=0.01),
        NEVER,
        Life("closed", ((at(1, 0.02), "stop"), (at(3, 10), "start"))),
    ),
    "the largest value's time": (
        keeps_the_time_of_the_largest,
        MOST,
        at_once("most", 1, [1, 1.5], 9, 1),
        at_once("most", 1, [1, 1.5], 1, 9),
        Life("closed soon", ((at(1, 1.6), "restart"),)),
    ),
    "losses of hidden presence": (
        tells_hidden_losses,
        one_collection("mood", presence="hidden", late=0),
        recording("mood", True, hours=7.01),
        NEVER,
        Life("closed for long", ((at(0, 7.1), "stop"), (at(2, 9), "start"))),
    ),
    "stored answers spread and absences not": (
        spreads_before_it_sweeps,
        MOOD,
        recording("mood", 1, 1, hours=0.01),
        NEVER,
        Life("closed", ((at(1, 0.02), "stop"), (at(3, 10), "start"))),
    ),
    "closed to absences alone": (
        closes_to_absences_alone,
        one_collection("mood", presence="hidden", linkage="collection"),
        recording("mood", 1, 1, 1, 1, hours=0.01),
        NEVER,
        Life("shut by the server", ((at(1, 2), "shut"),)),
    ),
    "a queue copied by a fork": (
        copies_the_queue,
        one_collection("event", unit="event", per_day=4),
        recording("event", 1, hours=9),
        recording("event", 1, hours=9),
        Life("forked at once", ((at(0, 9, 0.001), "fork"),)),
    ),
}


@pytest.mark.parametrize("bug", PLANTED)
def test_the_checker_sees(bug: str) -> None:
    """A planted bug makes two streams differ that the product keeps equal."""
    plant, collections, one, other, life = PLANTED[bug]

    expected = emissions(collections, one, life)

    assert emissions(collections, other, life) == expected
    assert (
        emissions(collections, one, life, plant=plant) != expected
        or emissions(collections, other, life, plant=plant) != expected
    )


# -- a real fork -----------------------------------------------------------------------------------


class CopiedPool(SystemRandomSource):
    """Wrong: a child goes on with the words that its parent has drawn, and its parent too."""

    def __init__(self) -> None:
        """Draw as much as a pool holds, and tell nobody of it."""
        self._pool = [number(os.urandom(8)) for _ in range(10_000)]

    def word(self) -> int:
        """Return a word that the other process is served as well."""
        return self._pool.pop()


def names_after_a_fork(place: Path, randomness: RandomSource) -> list[bytes]:
    """Return the fresh pseudonyms that a parent and its child make of the same randomness."""
    collections = one_collection("event", unit="event", per_day=1000, linkage="none")
    wire = Wire(clock_at(FIRST))
    device = Device(place, collections, wire.clock, wire, randomness=randomness)
    hear, say = os.pipe()
    child = os.fork()
    if child != 0:  # one after the other, or they would race for slots, and draw again
        os.waitpid(child, 0)
    for _ in range(3):
        device.client.record("event", True)
    device.client.flush()
    names = [report.pseudonym for report in wire.reports]
    if child == 0:
        os.write(say, b"".join(names))
        os._exit(0)
    said = os.read(hear, 1000)
    os.close(hear)
    os.close(say)
    return names + [said[at : at + 16] for at in range(0, len(said), 16)]


def test_no_coin_falls_twice_in_a_fork(tmp_path: Path) -> None:
    """Parent and child draw on; a pool that the fork copied would have been seen."""
    fresh = names_after_a_fork(tmp_path / "fresh", SystemRandomSource())
    copied = names_after_a_fork(tmp_path / "copied", CopiedPool())

    assert len(fresh) == len(copied) == 6
    assert len(set(fresh)) == 6
    assert len(set(copied)) < 6
