"""The relay's log says nothing of a device but that it sends: (a) of the two parties.

Two runs that differ in a value, in hidden presence or in the question are compared by all that the
relay writes down: instants, addresses, paths, lengths both ways, statuses, the clear header, and
which ephemeral keys occur again. They are equal, entry by entry, however the relay behaves: what it
does to a request can depend on its log alone, which is the same. Public presence shows, as ever:
that a request came is what a relay is for.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext

import pytest

from veilcount_client.testing import SettableClock
from veilcount_shared import Collection
from veilcount_shared.verdict import Verdict

from ..device_fixtures import at, file
from ..planting import Plant
from .emissions import LIVES, NEVER, Life, Stream, emissions, recording
from .relayed_wire import (
    ACTIONS,
    RelayedWire,
    RelayEntry,
    no_padding,
    one_encapsulation,
    relay_view,
    repeated,
    unpadded_replies,
)

PUBLIC = file(
    first={"values": ["a", "b", "c"]},
    event={"unit": "event", "per_day": 3, "linkage": "none"},
    most={"range": [0, 100], "measure": "mean", "takes": "max"},
    true={"model": "central", "budget": 1},
)
HIDDEN = file(
    mood={"values": ["good", "bad"], "presence": "hidden"},
    click={"unit": "event", "per_day": 2, "presence": "hidden", "linkage": "none"},
)
QUESTIONS = file(
    a={}, b={"values": [f"v{place}" for place in range(300)], "segments": {"arm": ["A", "B"]}}
)
ACTS: dict[str, Callable[[int], str]] = {
    **{action: lambda _, act=action: act for action in ACTIONS if action != "drop"},  # type: ignore[misc] # a default
    "all in turn": lambda place: ACTIONS[place % len(ACTIONS)],
}


def entries(
    collections: dict[str, Collection],
    stream: Stream,
    life: Life = LIVES[0],
    *,
    act: Callable[[int], str] = ACTS["forward"],
    plant: Plant = nullcontext,
    verdict: Verdict | None = None,
    series: Callable[[str], str] = str,
) -> list[RelayEntry]:
    """Return the relay's log of one device."""
    wires: list[RelayedWire] = []

    def wire(clock: SettableClock) -> RelayedWire:
        wires.append(RelayedWire(clock, address="203.0.113.7", act=act))
        wires[0].verdict = lambda _: verdict
        return wires[0]

    with plant():
        emissions(collections, stream, life, wire=wire, series=series)
    return wires[0].relay_log


def daily(collections: dict[str, Collection], *values: object) -> Stream:
    return sum((recording(name, *values) for name in collections), NEVER)


TRUSTING = Life("trusting a curator", options={"trust_curator": True})


@pytest.mark.parametrize("act", ACTS)
def test_values_and_hidden_presence_do_not_show_to_an_active_relay(act: str) -> None:
    for collections, life, streams in (
        (PUBLIC, TRUSTING, (daily(PUBLIC, True, 1, "a", 5), daily(PUBLIC, False, 99, "?", None))),
        (HIDDEN, LIVES[0], (NEVER, daily(HIDDEN, "good", True, "bad", object()))),
    ):
        one, other = (entries(collections, each, life, act=ACTS[act]) for each in streams)

        assert len(one) >= 12
        assert relay_view(one) == relay_view(other)
        assert repeated(one) == repeated(other) == 0  # a retry is sealed afresh


@pytest.mark.parametrize("life", LIVES[4:8:3], ids=repr)
def test_hidden_presence_does_not_show_whatever_happens_to_the_device(life: Life) -> None:
    one, other = (
        entries(HIDDEN, each, life, act=ACTS["all in turn"])
        for each in (NEVER, daily(HIDDEN, True, True, True, True))
    )

    assert one
    assert relay_view(one) == relay_view(other)


def of_question(name: str, plant: Plant = nullcontext) -> list[tuple[object, ...]]:
    """Return what a relay sees of one who is asked one of the questions, drawn alike."""
    segments = {"arm": "A"} if name == "b" else {}
    stream = tuple((at(day, 9), name, True, segments) for day in range(3))
    return relay_view(entries(QUESTIONS, stream, plant=plant, series=lambda _: "either"))


def test_the_question_does_not_show() -> None:
    """A yes/no question and one of 300 values with a segment: the same instants and lengths."""
    assert of_question("a")
    assert of_question("a") == of_question("b")


def lengths(plant: Plant = nullcontext, verdict: Verdict | None = None) -> set[tuple[int, int]]:
    """Return the lengths, both ways, of reports."""
    log = entries(QUESTIONS, recording("a", True, True), plant=plant, verdict=verdict)
    assert len(log) >= 2  # what is full is sent again, and so the lengths are compared
    return {(len(each.body), each.reply) for each in log}


def test_no_verdict_shows() -> None:
    found = [lengths(verdict=each) for each in (None, Verdict.FULL, Verdict.MALFORMED)]

    assert len(set.union(*map(set, found))) == 1


# -- planted leaks ---------------------------------------------------------------------------------


def test_missing_padding_is_found() -> None:
    """Of bodies it shows the question; of replies, their verdict."""
    assert of_question("a", no_padding) != of_question("b", no_padding)
    assert lengths(unpadded_replies) != lengths(unpadded_replies, Verdict.MALFORMED)


def test_the_same_encapsulation_at_a_retry_is_found() -> None:
    """It tells a retry from another report: what the relay then knows is how many there were."""
    stream = recording("a", True, True)
    log = entries(QUESTIONS, stream, act=ACTS["all in turn"], plant=one_encapsulation)

    assert repeated(log) > 0
