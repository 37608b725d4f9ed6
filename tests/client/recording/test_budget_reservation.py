"""What is reserved when definitions are loaded, and that nobody can ever spend more."""

from __future__ import annotations

import tempfile
from collections import defaultdict
from collections.abc import Iterable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from veilcount_client.errors import UnknownCollection
from veilcount_client.recording.budget_reservation import Reservation, reserve
from veilcount_client.state.losses import Loss
from veilcount_client.state.sqlite import SqliteState
from veilcount_shared import Collection

from ..device_fixtures import Device, at, file, quick, set_clock

TEN_DAYS = {"from": "2026-12-01", "until": "2026-12-11"}  # a collection of epsilon 1 costs 10
Table = dict[str, Any]


@pytest.fixture
def state(tmp_path: Path) -> SqliteState:
    return SqliteState(tmp_path)


def ten_days(**tables: object) -> dict[str, Collection]:
    """Return collections of ten days, each by its epsilon or its keys."""
    keys = {
        name: {**TEN_DAYS, **(keys if isinstance(keys, dict) else {"epsilon": keys})}
        for name, keys in tables.items()
    }
    return file(**keys)


def load(
    state: SqliteState, ceiling: int | None = None, daily: int | None = None, **tables: Any
) -> Reservation:
    """Load a file of collections of ten days."""
    amounts = [None if each is None else Fraction(each) for each in (ceiling, daily)]
    return reserve(state, ten_days(**tables).values(), *amounts)


def in_cohort(number: int, epsilon: int = 1, *, of: int = 2) -> Table:
    """Return the keys of a collection of one cohort of a draw."""
    return {"epsilon": epsilon, "cohort": {"draw": "d", "of": of, "number": number}}


# -- which collections fit -------------------------------------------------------------------------

COHORTS = {"all": 1, **{f"c{number}": in_cohort(number, number + 1, of=3) for number in range(3)}}
SAME_COHORT = {"a": in_cohort(1, 2), "b": in_cohort(1, 2)}
PAIR: Table = {"a": {"epsilon": 1, "twin": "b"}, "b": {"model": "central", "budget": 3}}
RENAMED: Table = {"epsilon": 1, "replaces": "a"}
RENAMED_AGAIN: Table = {"epsilon": 1, "replaces": "b"}

#: files that are loaded one after the other into one state, each with the collections that fit
FITTING: dict[str, list[tuple[Table, str]]] = {
    "in file order, skipping what does not fit": [({"ceiling": 40, "a": 2, "b": 3, "c": 1}, "a c")],
    "the day has a ceiling of its own": [
        ({"ceiling": 1000, "daily": 4, "a": 2, "b": 3, "c": 2}, "a c")
    ],
    "the first file sets the ceilings, an explicit one holds only while it is passed": [
        ({"a": 1}, "a"),
        ({"ceiling": 90, "daily": 9, "a": 1}, "a"),
        ({"a": 1, "b": 1}, "a"),
        ({"ceiling": 20, "daily": 2, "a": 1, "b": 1}, "a b"),
    ],
    "of the cohorts of one draw the largest counts": [({"ceiling": 40, **COHORTS}, "all c0 c1 c2")],
    "and does not fit below it": [({"ceiling": 39, **COHORTS}, "all c0 c1")],
    "collections of one cohort add up": [({"ceiling": 39, **SAME_COHORT}, "a")],
    "of a paired collection the larger half counts": [({"ceiling": 30, **PAIR}, "a b")],
    "and does not fit either": [({"ceiling": 29, **PAIR}, "a")],
    "a ceiling below what was reserved stops everything": [
        ({"a": 1, "b": 2}, "a b"),
        ({"ceiling": 29, "a": 1}, ""),
        ({"ceiling": 30, "a": 1}, "a"),
    ],
    "a removed collection keeps its lifetime claim, and returns its days": [
        ({"a": 1, "b": 1}, "a b"),
        ({"b": 1, "c": 1}, "b"),
        ({"ceiling": 30, "b": 1, "c": 1}, "b c"),
        ({"ceiling": 30, "a": 1, "b": 1}, "a b"),
    ],
    "a smaller redefinition frees nothing": [
        ({"a": 3, "b": 1}, "a b"),
        ({"a": 1, "b": 1, "c": 1}, "a b"),
        ({"a": 1, "b": 1, "c": 1}, "a b"),
    ],
    "a refused redefinition keeps what its old form reserved": [
        ({"a": 2}, "a"),
        ({"a": 3, "b": 1}, ""),
        ({"b": 2}, ""),
        ({"a": 2, "b": 1}, "a"),
    ],
    "a change of cohort makes a claim on everybody": [
        ({"a": in_cohort(0), "everybody": 1}, "a everybody"),
        ({"a": in_cohort(1), "c": in_cohort(0)}, "a"),
    ],
    "a renamed collection spends from its old account, though it was refused once": [
        ({"a": 1}, "a"),
        ({"b": RENAMED}, "b"),
        ({"b": {**RENAMED, "epsilon": 5}}, ""),
        ({"b": 1}, "b"),
        ({"c": RENAMED_AGAIN}, "c"),
        ({"c": RENAMED_AGAIN, "a": 1}, "c a"),
    ],
}


@pytest.mark.parametrize("case", FITTING)
def test_collections_fit_under_the_ceilings(state: SqliteState, case: str) -> None:
    for arguments, expected in FITTING[case]:
        assert set(load(state, **arguments).claims) == set(expected.split())


def test_a_refusal_names_the_ceiling_that_would_do(state: SqliteState) -> None:
    reasons = [
        load(state, *ceilings, a=2, b=3).refused["b"] for ceilings in ((40, None), (1000, 4))
    ]

    assert reasons == [
        "needs ceiling = 50, it is 40: raise it to allow this",
        "needs daily_ceiling = 5, it is 4: raise it to allow this",
    ]


def test_a_refused_collection_is_explained_and_counted(tmp_path: Path) -> None:
    """And raises only in a strict app."""
    device = Device(tmp_path, ten_days(a=1, b=1), ceiling=10)
    device.record("b")

    assert "needs ceiling = 20" in str(device.client.explain("b"))
    assert device.losses("b") == {Loss.REFUSED: 1}
    device.stop()
    strict = Device(tmp_path, ten_days(a=1, b=1), ceiling=10, strict=True)
    with pytest.raises(UnknownCollection):
        strict.client.record("b", True)


# -- what is spent ---------------------------------------------------------------------------------


def spend(device: Device, name: str, days: Iterable[int]) -> int:
    """Record twice a day; return how many reports that made."""
    before = len(device.wire.reports)
    for day in days:
        set_clock(device.clock, at(day, 9))
        device.send(name, name)
    return len(device.wire.reports) - before


TWICE = {"unit": "event", "per_day": 2, "epsilon": 1, **TEN_DAYS}


@pytest.mark.parametrize("name", ["a", "b"], ids=["redefined", "renamed"])
def test_a_redefinition_spends_only_what_is_left(tmp_path: Path, name: str) -> None:
    """Under a new fingerprint, and under a new name, the old account goes on: 20 in all.

    The day's cap is of the account, too.
    """
    device = Device(tmp_path, file(a=TWICE))
    before = spend(device, "a", range(7))
    device.stop()
    renamed = {"replaces": "a"} if name == "b" else {}
    device.start(file(**{name: {**TWICE, **renamed, "until": "2026-12-31", "answers": 10}}))
    device.client.consent(True)
    same_day = spend(device, name, [6])
    after = spend(device, name, range(7, 30))

    assert (before, same_day) == (14, 0)
    assert after <= 6
    assert set(device.state.spent(device.key)) == {"a"}
    assert device.spent("a") == (before + after) * 10**6


def test_no_refusal_depends_on_what_was_recorded(tmp_path: Path) -> None:
    """A busy state and an idle one accept and refuse the same of a next file."""
    later = ten_days(a={"epsilon": 2}, b={"epsilon": 1, "replaces": "x"}, c=3, d=1)
    reservations = []
    for place, days in (("busy", range(9)), ("idle", range(0))):
        device = Device(tmp_path / place, ten_days(x=1, a=1, c=2))
        for name in device.collections:
            spend(device, name, days)
        device.stop()
        device.start(later)
        reservations.append(device.client.reservation)

    assert reservations[0] == reservations[1]
    assert reservations[0].refused


def test_a_collection_that_is_spent_takes_nothing_from_another(tmp_path: Path) -> None:
    device = Device(tmp_path, file(a=TWICE, b=TWICE))

    assert [spend(device, name, range(12)) for name in ("a", "b")] == [20, 20]


@st.composite
def tables(draw: st.DrawFn) -> dict[str, Table]:
    """Return a file of a few collections; some in a cohort, some renamed."""
    names = draw(st.lists(st.sampled_from("abcd"), min_size=1, max_size=3, unique=True))
    found: dict[str, Table] = {}
    for name in names:
        keys: Table = {"epsilon": draw(st.integers(1, 4))}
        if draw(st.booleans()):
            keys |= in_cohort(draw(st.integers(0, 1)), keys["epsilon"])
        old = draw(st.sampled_from(["a", "b", "c", "d", None]))
        if old not in {None, *names, *(each.get("replaces") for each in found.values())}:
            keys["replaces"] = old
        found[name] = keys
    return found


@settings(max_examples=50)
@given(st.lists(tables(), min_size=1, max_size=5))
def test_whatever_files_follow_nobody_exceeds_the_ceiling(files: list[dict[str, Table]]) -> None:
    """Persons of both cohorts who always spend all they may stay below the first file's sum."""
    accounts: dict[int, dict[str, int]] = {0: defaultdict(int), 1: defaultdict(int)}
    with tempfile.TemporaryDirectory(dir=quick()) as place:
        state = SqliteState(place)
        for each in files:
            collections = ten_days(**each)
            loaded = reserve(state, collections.values())
            for name, claim in loaded.claims.items():
                cohort = collections[name].cohort
                for person in accounts if cohort is None else [cohort.number]:
                    spent = accounts[person][claim.lineage]
                    accounts[person][claim.lineage] = max(spent, claim.life)
        state.close()

    assert all(sum(each.values()) <= loaded.ceilings.life for each in accounts.values())
