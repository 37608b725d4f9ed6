"""Promise 2 (b): that, when and how many reports leave depends only on what is declared public.

Every randomizer is a constant here, so whatever still differs between two runs was shown by the
client and not by a mechanism. Two streams that a promise makes equal are run through the
whole client, in time, with the same randomness; every attempt to send is compared, to the byte and
the instant. The same checker is shown to see planted bugs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from veilcount_shared.wire import decode_binary

from ..device_fixtures import HOUR, MINUTE, Device, RaisingValue, at, file, one_collection
from .emissions import (
    FIRST,
    JITTER_WORDS,
    LIVES,
    NEVER,
    Life,
    Stream,
    assert_alike,
    at_once,
    emissions,
    in_lives,
    recording,
    reports_of,
)

# -- hidden presence -------------------------------------------------------------------------------

HIDDEN = file(
    mood={"values": ["good", "bad"], "presence": "hidden"},
    click={"unit": "event", "per_day": 4, "presence": "hidden"},
    alone={"unit": "event", "per_day": 2, "presence": "hidden", "linkage": "none"},
    latest={"values": ["a", "b", "c"], "takes": "last", "held": "device", "presence": "hidden"},
    ever={"takes": "any", "held": "device", "presence": "hidden", "unit": "week"},
    seldom={"presence": "hidden", "answers": 5},
    monthly={"presence": "hidden", "unit": "month", "answers": 1},
    linked={"presence": "hidden", "linkage": "collection"},
    state={"measure": "trend", "changes": 1},
    back={"takes": "returning", "presence": "hidden"},
)
DAYS = 4
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


@in_lives(LIVES[1::2], ACTIVE)
def test_hidden_presence_shows_nothing_of_what_was_recorded(life: Life, names: list[str]) -> None:
    """Where presence is hidden, all that leaves is what would leave of someone idle."""
    idle = emissions(HIDDEN, NEVER, life)

    assert idle
    for name in names:
        assert_alike(HIDDEN, idle, emissions(HIDDEN, ACTIVE[name], life), name)


def test_hidden_presence_shows_nothing_to_the_minute() -> None:
    """The same holds with the true minute, at which a thread looks for absences.

    As many answers leave as the definition says, one a slot.
    """
    daily = {"mood": 1, "click": 4}
    collections = {name: HIDDEN[name] for name in daily}
    idle = emissions(collections, NEVER, minute=MINUTE, until=at(1.25))
    busy = sum((recording(name, 1, 1, hours=0.2) for name in collections), NEVER)

    assert_alike(collections, idle, emissions(collections, busy, minute=MINUTE, until=at(1.25)))
    for name, answers in daily.items():
        bodies = [decode_binary(body) for _, body in reports_of(HIDDEN[name], idle)]
        assert sum(each.period == 0 for body in bodies for each in body.reports) == answers, name


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
    weekly={"range": [0, 9], "measure": "mean", "unit": "week", "takes": "max", "held": "process"},
    monthly={"unit": "month"},
    user={"unit": "user", "takes": "last", "held": "process"},
    back={"takes": "returning"},
    drawn={"answers": 10},
    arm={"segments": {"arm": ["A", "B"]}, "takes": "any"},
    true={"model": "central", "budget": 1},
)
HOURS = (9, 9.2, 10.5, 18, 23.9)
VALUES: dict[str, tuple[object, ...]] = {
    "one value": (True,) * 5,
    "another": (False,) * 5,
    "a change in the middle of the day": (True, True, False, False, True),
    "out of the domain": ("?", -(10**30), b"", RaisingValue(), None),
    "rising": (1, 2, 3, 4, 5),
    "falling": (5, 4, 3, 2, 1),
    "the largest first": (math.inf, 0, 0, -1, 0),
    "not a number": (math.nan, 3, math.nan, 2, 1),
    "of different kinds": ("a", 1, "c", True, {}),
}


def doing(values: Sequence[object]) -> Stream:
    """Record these values in every public collection, every day, at the same hours."""
    return tuple(
        (instant, name, value, {"arm": "AB"[place % 2]} if name == "arm" else {})
        for day in range(DAYS)
        for name in PUBLIC
        for place, (instant, _, value, _) in enumerate(at_once(name, day, HOURS, *values))
    )


@in_lives(LIVES[2::2], [name for name in VALUES if name != "one value"])
def test_no_value_shows_in_what_leaves(life: Life, names: list[str]) -> None:
    """Streams with the same times and other values leave the same bytes at the same instants."""
    life = replace(life, options={"trust_curator": True})
    usual = emissions(PUBLIC, doing(VALUES["one value"]), life)

    assert usual
    for name in names:
        assert_alike(PUBLIC, usual, emissions(PUBLIC, doing(VALUES[name]), life), name)


def test_no_value_shows_however_the_jitter_falls() -> None:
    """The uploader's randomness changes when things leave, alike for all values."""
    collections = {name: PUBLIC[name] for name in ("many", "event", "most")}
    streams = [
        tuple(record for record in doing(VALUES[name]) if record[1] in collections)
        for name in ("rising", "falling")
    ]
    one, other = (
        [emissions(collections, each, LIVES[7], word=word, until=at(3)) for word in JITTER_WORDS]
        for each in streams
    )

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
    for life in (LIVES[2], *LIVES[5:7]):
        first = emissions(collections, once, life)
        assert_alike(collections, first, emissions(collections, often, life), life)


def test_a_segment_is_the_latest_records_and_not_that_of_the_value_that_stays() -> None:
    """Which arm an answer names does not depend on which of the values was the largest."""
    collections = one_collection(
        "most", range=[0, 9], measure="mean", takes="max", segments={"arm": ["A", "B"]}
    )

    def stream(*values: object) -> Stream:
        return tuple(
            (at(2, 1, place), "most", value, {"arm": arm})
            for place, (value, arm) in enumerate(zip(values, "AB", strict=True))
        )

    assert_alike(collections, *(emissions(collections, stream(*each)) for each in ((9, 1), (1, 9))))


@pytest.mark.one_in(3)
@pytest.mark.parametrize("life", LIVES, ids=repr)
def test_a_collections_reports_do_not_depend_on_another(life: Life) -> None:
    """Whatever is done with A, the bodies of B are the same, at the same instants.

    Of a hidden collection they are the same even if it is B that is recorded.
    """
    collections = file(
        a={"unit": "event", "per_day": 15},
        many={"unit": "event", "per_day": 15, "linkage": "none"},
        b={},
        shown={"takes": "last"},
        kept={"presence": "hidden"},
    )
    others = recording("b", True, True, True) + recording("shown", True, True, True)
    more = others + recording("kept", True, True, True) + sum(
        (at_once(name, day, range(24), *[n % 3 for n in range(24)])
         for name in ("a", "many") for day in range(DAYS)), NEVER,
    )  # fmt: skip
    idle_run, busy_run = emissions(collections, others, life), emissions(collections, more, life)

    assert len(busy_run) > len(idle_run) + 20
    for name in ("b", "shown", "kept"):
        idle, busy = (reports_of(collections[name], each) for each in (idle_run, busy_run))
        assert_alike(collections, idle, busy, name)


# -- what does not wait for a record, and what a withdrawal does not show --------------------------


def test_a_backlog_does_not_wait_for_another_collections_record() -> None:
    """What is stored leaves after a restart whether or not anything else is recorded."""
    collections = file(a={}, b={})
    life = Life("restarted at once", ((at(0, 9, 1), "restart"),))
    idle = recording("b", True)
    busy = idle + recording("a", True, True, hours=10)
    one, other = (emissions(collections, each, life, lazy=True) for each in (idle, busy))

    assert_alike(collections, *(reports_of(collections["b"], each) for each in (one, other)))


LAZY_LIVES = (
    LIVES[2],
    Life("withdrawn for hours", ((at(1, 0.1), "withdraw"), (at(1, 0.2), "consent"))),
    Life("forgotten for hours", ((at(1, 0.1), "forget"), (at(1, 0.2), "consent"))),
    Life(
        "asked again days later",
        ((at(0, 7.1), "forget"), (at(0, 7.2), "consent"), (at(2, 0.1), "consent")),
    ),
)


@pytest.mark.parametrize("life", LAZY_LIVES, ids=repr)
def test_hidden_presence_waits_for_no_record_and_shows_no_consent(life: Life) -> None:
    """A thread that is started when it must be sends the same of who records and who never does."""
    mood = one_collection("mood", presence="hidden")
    idle, active = (
        emissions(mood, stream, life, lazy=True)
        for stream in (NEVER, recording("mood", True, True, True, hours=0.05))
    )

    assert idle
    assert_alike(mood, idle, active)


def test_hidden_presence_of_many_persons_does_not_wait_for_a_record(tmp_path: Path) -> None:
    """After a restart, absences of persons who consented earlier need no record to leave."""
    mood = one_collection("mood", presence="hidden")
    device = Device(tmp_path, mood, FIRST, persons=True, consent=None)
    device.client.person(1).consent(True)
    device.run_until(at(0, 8))
    device.client.flush()
    device.lazy = True
    device.restart()

    assert device.awake
