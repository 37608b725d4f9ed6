"""A group: each person answers one of its questions, whole, and pays for no more than that one."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any
from unittest.mock import PropertyMock, patch

import pytest

from veilcount_client.diagnostics.state_checks import NotesOverlay
from veilcount_client.recording import answer_times, budget_reservation
from veilcount_client.recording.budget_reservation import reserve
from veilcount_client.recording.recorder import Recorder
from veilcount_client.state.losses import Loss
from veilcount_shared import Collection, budget_claims, parse_collections, schedule
from veilcount_shared.budget_claims import Claim, micro, total
from veilcount_shared.definition_record import Definition
from veilcount_shared.schedule import SecretRandomSource

from ..device_fixtures import DAY, Device, at, definitions_text, device_in_memory
from ..planting import Plant, in_place_of

NAMES = ("a", "b", "c")
DAYS = 5
SHORT = {"until": "2026-12-06"}
PERSONS, MANY = range(6), range(24)  # of fixed seeds
HIDDEN = {"presence": "hidden"}
KINDS: Mapping[str, dict[str, Any]] = {
    "a": {},
    "b": {"values": ["x", "y", "z"]},
    "c": {"values": [1, 2]},
    "d": {},
}
VALUES = {"a": True, "b": "y", "c": 2}


def group_text(names: tuple[str, ...] = NAMES, /, *others: str, **keys: Any) -> str:
    """Return a file with a group of these questions, which share the keys; others are alone."""
    tables = {name: KINDS[name] | SHORT | keys for name in (*names, *others)}
    group = f"[group.habits]\nquestions = {json.dumps(names)}\n" if len(names) > 1 else ""
    return definitions_text("acme", **tables) + group


def group_file(
    names: tuple[str, ...] = NAMES, /, *others: str, **keys: Any
) -> dict[str, Collection]:
    """Return the collections of such a file."""
    return parse_collections(group_text(names, *others, **keys), lambda _: [])


# -- one question of a person, whatever happens ----------------------------------------------------


def life(device: Device, forgets: set[int], restarts: set[int], *, records: bool) -> None:
    """Live through the campaign: each value is recorded each day, and some days end otherwise."""
    for day in range(DAYS):
        if records:
            for name in NAMES:
                device.client.record(name, VALUES[name])
            device.work()
        if day in restarts:
            device.restart()
        device.run_until(at(day + 1, 9))
        if day in forgets:
            device.client.forget()
            device.client.consent(True)
    device.run_until(at(DAYS + 40))


LIVES: dict[str, tuple[dict[str, Any], set[int], set[int], bool]] = {
    "recording": ({}, set(), set(), True),
    "forgetting": ({}, {1, 3}, set(), True),
    "restarting": ({}, set(), {0, 2}, True),
    "hidden": (HIDDEN, set(), {3}, True),
    "hidden, without a record": (HIDDEN, {2}, set(), False),
    "a running value": ({"takes": "last", "held": "device"}, {2}, {4}, True),
}


@contextmanager
def lived(name: str, person: int, plant: Plant = nullcontext) -> Iterator[Device]:
    """Yield a device after such a life."""
    keys, forgets, restarts, records = LIVES[name]
    with device_in_memory(
        person, group_file(**keys), at(0, 9), minute=DAY / 24, plant=plant
    ) as one:
        life(one, forgets, restarts, records=records)
        yield one


def promises_broken(name: str, plant: Plant = nullcontext) -> set[str]:
    """Return what of a group's promises some person sees broken in a life."""
    broken = set()
    for person in PERSONS:
        answer_times._draw_periods.cache_clear()
        with lived(name, person, plant) as device:
            names = {each.fingerprint: each.name for each in device.collections.values()}
            sent = {names[report.fingerprint] for report in device.wire.reports}
            group = device.collections["a"].group
            assert group is not None
            drawn = schedule.draw_question(device.person.root, group)
            costs = {each: device.spent(each) for each in NAMES}
            if len(sent) > 1:
                broken.add("one question")
            if sent != {drawn}:
                broken.add("the drawn one")
            if sum(costs.values()) != costs[drawn] or not costs[drawn]:
                broken.add("one account")
            counted = micro(Fraction(1)) * len(device.wire.counted)
            if costs[drawn] < counted or (costs[drawn] > counted and not LIVES[name][1]):
                broken.add("whole epsilon")  # what `forget` wiped had been paid for
    answer_times._draw_periods.cache_clear()
    return broken


@pytest.mark.parametrize("name", LIVES)
def test_a_person_answers_one_question_with_the_whole_epsilon(name: str) -> None:
    """`forget` draws nothing again: who could, would answer several questions."""
    assert promises_broken(name) == set()


@in_place_of(schedule, "is_selected")
def all_are_answered(_original: Any, *_: Any) -> bool:
    return True


@in_place_of(answer_times, "answering_periods")
def drawn_per_period(_original: Any, person: Any, collection: Collection) -> frozenset[int]:
    group = collection.group
    assert group is not None
    draws = (
        SecretRandomSource(person.root, "group", group.digest, period).below(len(NAMES))
        for period in range(collection.periods)
    )
    number = group.number(collection.name)
    return frozenset(period for period, drawn in enumerate(draws) if drawn == number)


@in_place_of(Recorder, "_answer")
def drawn_from_the_value(original: Any, recorder: Recorder, record: Any) -> Any:
    place = len(repr(record.value)) % len(NAMES)  # True: 4, "y": 3, 2: 1
    if place != NAMES.index(record.collection.name):
        return Loss.NOT_SELECTED
    with patch.object(schedule, "is_selected", lambda *_: True):
        answer_times._draw_periods.cache_clear()
        return original(recorder, record)


@in_place_of(answer_times, "_draw_periods")
def drawn_by_the_day(original: Any, root: bytes, *rest: Any) -> Any:
    return original(bytes([*root[1:], len(root)]), *rest)  # another root than the person's


def split_epsilon() -> AbstractContextManager[object]:
    part = PropertyMock(return_value=Fraction(1, 4))
    return patch.object(Definition, "unit_epsilon", part)


PLANTED: dict[str, tuple[Callable[..., Any], set[str]]] = {
    "all members are sent": (all_are_answered, {"one question", "the drawn one", "one account"}),
    "drawn per period": (drawn_per_period, {"one question", "the drawn one", "one account"}),
    "drawn from the value": (drawn_from_the_value, {"the drawn one"}),
    "drawn from another root": (drawn_by_the_day, {"the drawn one", "one account"}),
    "epsilon is split": (split_epsilon, {"whole epsilon"}),
}


@pytest.mark.parametrize("planted", PLANTED)
def test_a_wrong_draw_is_detected(planted: str) -> None:
    plant, broken = PLANTED[planted]

    assert broken <= promises_broken("recording", plant)


def test_what_is_not_drawn_is_explained_and_costs_nothing(tmp_path: Path) -> None:
    device = Device(tmp_path, group_file())
    device.record("a", "b", "c")
    group = device.collections["a"].group
    assert group is not None
    drawn = schedule.draw_question(device.person.root, group)
    other = next(name for name in NAMES if name != drawn)

    assert f"group habits: {drawn} was drawn" in str(device.client.explain(other))
    assert f"{drawn} was drawn" not in str(device.client.explain(drawn))
    assert device.losses() == {"not_selected": 2}


def test_the_draw_depends_on_no_consent(tmp_path: Path) -> None:
    """Who consents to one question alone, and is drawn for another, answers none."""
    answered = set()
    for person in MANY:
        device = Device(tmp_path / str(person), group_file(), person=person, consent=None)
        group = device.collections["a"].group
        assert group is not None
        device.client.consent(True, only=["a"])
        drawn = schedule.draw_question(device.person.root, group)
        device.record("a", value=True)
        answered.add(len(device.stored))
        assert len(device.stored) == (drawn == "a")
        device.stop()

    assert answered == {0, 1}


def test_two_persons_of_a_client_are_drawn_apart(tmp_path: Path) -> None:
    device = Device(tmp_path, group_file(), persons=True, person=1)
    for person in MANY:
        one = device.client.person(person)
        one.consent(True)
        for name in NAMES:
            one.record(name, VALUES[name])
    device.work()
    stored = [
        [each.report.fingerprint for each in device.state.sent(key)]
        for key in device.state.consenting()
    ]

    assert [len(fingerprints) for fingerprints in stored] == [1] * len(MANY)
    assert len({fingerprint for (fingerprint,) in stored}) == len(NAMES)


# -- one reservation, and never too little ---------------------------------------------------------


def test_a_group_is_reserved_once() -> None:
    notes = NotesOverlay()
    loaded = reserve(notes, group_file().values())
    cost = micro(Fraction(DAYS))

    assert (loaded.ceilings.life, loaded.ceilings.day) == (cost, micro(Fraction(1)))
    assert set(loaded.claims) == set(NAMES)
    assert not reserve(notes, group_file().values()).refused


def test_a_changed_group_needs_a_larger_ceiling() -> None:
    """Who answered one question may be drawn for another: each counts from then on."""
    notes = NotesOverlay()
    reserve(notes, group_file().values())
    changed = group_file(late=7).values()

    assert set(reserve(notes, changed).refused) == set(NAMES)
    assert not reserve(notes, changed, Fraction(3 * DAYS), Fraction(3)).refused


FILES: dict[str, dict[str, Collection]] = {
    "alone": group_file(("a",), "b", "c"),
    "two": group_file(("a", "b"), "c"),
    "three": group_file(),
    "three again": group_file(late=7),
    "more": group_file(epsilon=2),
    "other two": group_file(("b", "c")),
    "two groups": parse_collections(
        group_text(("a", "b"), "c", "d") + '[group.more]\nquestions = ["c", "d"]\n', lambda _: []
    ),
}
AMPLE = Fraction(1_000)


def most_spent(history: tuple[str, ...]) -> tuple[int, int]:
    """Return the most that a person spends who lives through these files, and what is claimed.

    Over all draws of all groups; by name, what is spent stays spent, and all that is left is spent.
    """
    notes = NotesOverlay()
    reservations = [reserve(notes, FILES[name].values(), AMPLE, AMPLE) for name in history]
    groups = {
        each.group for name in history for each in FILES[name].values() if each.group is not None
    }
    by_digest = {group.digest: group for group in groups}
    most = 0
    for draws in product(*(group.questions for group in by_digest.values())):
        drawn = dict(zip(by_digest, draws, strict=True))
        account: dict[str, int] = defaultdict(int)
        for name, reservation in zip(history, reservations, strict=True):
            for each in FILES[name].values():
                if each.group is None or drawn[each.group.digest] == each.name:
                    claim = reservation.claims[each.name]
                    account[claim.lineage] = max(account[claim.lineage], claim.life)
        most = max(most, sum(account.values()))
    claims = [Claim(**row) for row in json.loads(notes.note(budget_reservation.CLAIMS) or "[]")]
    return most, total(claims).life


HISTORIES = [*product(FILES, repeat=2), *product(FILES, repeat=3)]


def test_whatever_files_follow_no_person_spends_more_than_is_claimed() -> None:
    """Every order of two and of three files, every draw of their groups."""
    spent = {history: most_spent(history) for history in HISTORIES}

    assert [history for history, (most, claimed) in spent.items() if most > claimed] == []
    assert spent["three", "three"] == (micro(Fraction(DAYS)),) * 2
    assert spent["three", "three again"][0] == micro(Fraction(2 * DAYS))


@in_place_of(budget_claims, "_grouped")
def a_draw_is_remembered_alone(_original: Any, claim: Claim, _known: Claim) -> Claim:
    return claim


@in_place_of(budget_claims, "_most")
def all_members_of_any_group_exclude_each_other(original: Any, costs: Any) -> int:
    drawn = [cost for claim, cost in costs if claim.draw]
    return int(original([(claim, cost) for claim, cost in costs if not claim.draw])) + max(
        drawn, default=0
    )


@pytest.mark.parametrize(
    "plant", [a_draw_is_remembered_alone, all_members_of_any_group_exclude_each_other]
)
def test_a_claim_that_is_too_low_is_detected(plant: Plant) -> None:
    with plant():
        spent = [most_spent(history) for history in HISTORIES]

    assert any(most > claimed for most, claimed in spent)
