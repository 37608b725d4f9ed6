"""The ledger: what is reserved at load, and that nobody can ever spend more."""

from __future__ import annotations

import tempfile
from collections import defaultdict
from collections.abc import Iterable, Mapping
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

from ..device_fixtures import Device, Wire, at, clock_at, file, quick

TEN_DAYS = {"from": "2026-12-01", "until": "2026-12-11"}  # a collection of epsilon 1 costs 10


@pytest.fixture
def state(tmp_path: Path) -> SqliteState:
    """A fresh state."""
    return SqliteState(tmp_path)


@pytest.fixture
def other_state(tmp_path: Path) -> SqliteState:
    """Another fresh state."""
    return SqliteState(tmp_path / "other")


def load(
    state: SqliteState, ceiling: int | None = None, daily: int | None = None, **tables: Any
) -> Reservation:
    """Load a file of collections of ten days; each is given by its epsilon or its keys."""
    amounts = [None if each is None else Fraction(each) for each in (ceiling, daily)]
    return reserve(state, ten_days(**tables).values(), *amounts)


def ten_days(**tables: object) -> dict[str, Collection]:
    """Return collections of ten days."""
    keys = {
        name: {**TEN_DAYS, **(keys if isinstance(keys, dict) else {"epsilon": keys})}
        for name, keys in tables.items()
    }
    return file(**keys)


def spent(reservation: Reservation) -> set[str]:
    """Return the names of the collections that fit."""
    return set(reservation.claims)


# -- at load ---------------------------------------------------------------------------------------


def test_collections_fit_in_file_order(state: SqliteState) -> None:
    """What stands first is served first; what does not fit is refused, and smaller ones go on."""
    reservation = load(state, ceiling=40, a=2, b=3, c=1)

    assert spent(reservation) == {"a", "c"}
    assert reservation.refused == {"b": "needs ceiling = 50, it is 40: raise it to allow this"}


def test_a_day_has_a_ceiling_of_its_own(state: SqliteState) -> None:
    """What fits in a life may not fit in a day."""
    reservation = load(state, ceiling=1000, daily=4, a=2, b=3, c=2)

    assert spent(reservation) == {"a", "c"}
    assert reservation.refused == {"b": "needs daily_ceiling = 5, it is 4: raise it to allow this"}


def test_the_first_file_sets_the_ceilings_for_ever(state: SqliteState) -> None:
    """Without ceilings, the first file's sum holds; a later file that asks for more is refused."""
    first = load(state, a=1, b=2)
    later = load(state, a=1, b=2, c=1)

    assert (first.ceilings.life, first.ceilings.day) == (30_000_000, 3_000_000)
    assert spent(later) == {"a", "b"}
    assert later.ceilings == first.ceilings


def test_growth_takes_an_explicit_ceiling(state: SqliteState) -> None:
    """An app that raises the ceilings itself may ask for more."""
    load(state, a=1)
    grown = load(state, ceiling=20, daily=2, a=1, b=1)

    assert spent(grown) == {"a", "b"}


def test_the_ceilings_of_the_first_file_outlive_an_explicit_one(state: SqliteState) -> None:
    """An explicit ceiling holds as long as it is given; nothing grows by having been large once."""
    load(state, a=1)
    load(state, ceiling=90, daily=9, a=1)

    assert spent(load(state, a=1, b=1)) == {"a"}


def test_of_the_cohorts_of_one_draw_the_dearest_counts(
    state: SqliteState, other_state: SqliteState
) -> None:
    """A person is in one cohort of a draw: the others' collections cost that person nothing."""
    cohorts: dict[str, Any] = {
        f"c{number}": {"epsilon": number + 1, "cohort": {"draw": "d", "of": 3, "number": number}}
        for number in range(3)
    }
    reservation = load(state, ceiling=40, all=1, **cohorts)

    assert spent(reservation) == {"all", "c0", "c1", "c2"}
    assert spent(load(other_state, ceiling=39, all=1, **cohorts)) == {"all", "c0", "c1"}


def test_two_collections_of_one_cohort_add_up(state: SqliteState) -> None:
    """Who is in a cohort answers all of its collections."""
    cohort = {"draw": "d", "of": 2, "number": 1}
    pair: dict[str, Any] = {name: {"epsilon": 2, "cohort": cohort} for name in ("a", "b")}

    assert spent(load(state, ceiling=39, **pair)) == {"a"}


def test_of_two_twins_the_dearer_counts(state: SqliteState, other_state: SqliteState) -> None:
    """A person answers one of two twins."""
    twins: dict[str, Any] = {
        "a": {"epsilon": 1, "twin": "b"},
        "b": {"model": "central", "budget": 3},
    }

    assert spent(load(state, ceiling=30, **twins)) == {"a", "b"}
    assert spent(load(other_state, ceiling=29, **twins)) == {"a"}


def test_a_refused_collection_is_explained_and_counted(tmp_path: Path) -> None:
    """What does not fit is explained, counted, and raised only to a strict app."""
    clock = clock_at(at(0, 9))
    device = Device(tmp_path, ten_days(a=1, b=1), clock, Wire(clock), ceiling=10)
    device.client.record("b", True)
    device.worker.store()

    assert "needs ceiling = 20" in str(device.client.explain("b"))
    assert device.worker.state.losses()[Loss.REFUSED, "b"] == 1
    device.stop()
    strict = Device(tmp_path, ten_days(a=1, b=1), clock, Wire(clock), ceiling=10, strict=True)
    with pytest.raises(UnknownCollection):
        strict.client.record("b", True)


# -- from one file to the next ---------------------------------------------------------------------


def test_a_ceiling_below_what_was_reserved_stops_everything(state: SqliteState) -> None:
    """What was reserved may be spent: under a lower ceiling nobody may spend anything more."""
    load(state, a=1, b=2)

    assert spent(load(state, ceiling=29, a=1)) == set()
    assert spent(load(state, ceiling=30, a=1)) == {"a"}


def test_a_removed_collection_keeps_its_lifetime_claim(state: SqliteState) -> None:
    """What it may have spent stays spent, so its room is not given to another."""
    load(state, a=1, b=1)

    assert spent(load(state, b=1, c=1)) == {"b"}


def test_a_removed_collection_gives_its_days_back(state: SqliteState) -> None:
    """It spends nothing any more on the days to come."""
    load(state, a=1, b=1)

    assert spent(load(state, ceiling=30, b=1, c=1)) == {"b", "c"}


def test_a_removed_collection_comes_back_to_its_own_claim(state: SqliteState) -> None:
    """Taken out and put in again, it needs no room twice."""
    load(state, a=1, b=1)
    load(state, b=1)

    assert spent(load(state, a=1, b=1)) == {"a", "b"}


def test_a_smaller_redefinition_frees_nothing(state: SqliteState) -> None:
    """What the larger form reserved may be spent: it is not given to another."""
    load(state, a=3, b=1)

    assert spent(load(state, a=1, b=1, c=1)) == {"a", "b"}
    assert spent(load(state, a=1, b=1, c=1)) == {"a", "b"}


def test_a_refused_redefinition_keeps_what_its_old_form_reserved(state: SqliteState) -> None:
    """Its old form may have spent: neither this file nor a later one gives its room away."""
    load(state, a=2)

    assert spent(load(state, a=3, b=1)) == set()
    assert spent(load(state, b=2)) == set()
    assert spent(load(state, a=2, b=1)) == {"a"}


def test_a_change_of_cohort_makes_a_claim_on_everybody(state: SqliteState) -> None:
    """Who answered the old form and who answers the new one are different persons."""

    def in_cohort(number: int) -> dict[str, object]:
        return {"epsilon": 1, "cohort": {"draw": "d", "of": 2, "number": number}}

    load(state, a=in_cohort(0), everybody=1)

    assert spent(load(state, a=in_cohort(1), c=in_cohort(0))) == {"a"}


def test_a_renamed_collection_takes_its_claim_along(state: SqliteState) -> None:
    """With `replaces` the new name spends from the old account, and from no other."""
    load(state, a=1)
    renamed = load(state, b={"epsilon": 1, "replaces": "a"})
    again = load(state, c={"epsilon": 1, "replaces": "b"})

    assert renamed.claims["b"].lineage == again.claims["c"].lineage == "a"
    assert spent(load(state, c={"epsilon": 1, "replaces": "b"}, a=1)) == {"c", "a"}


def test_a_rename_that_is_refused_does_not_lose_the_account(state: SqliteState) -> None:
    """Refused once for its price, it still spends from the old account later."""
    load(state, a=1)
    load(state, b={"epsilon": 1, "replaces": "a"})
    load(state, b={"epsilon": 5, "replaces": "a"})

    assert load(state, b=1).claims["b"].lineage == "a"


# -- what is spent ---------------------------------------------------------------------------------


def spend(device: Device, name: str, days: Iterable[int]) -> int:
    """Record twice a day; return how many reports that made."""
    before = len(device.wire.reports)
    for day in days:
        device.clock._now = at(day, 9)
        device.client.record(name, True)
        device.client.record(name, False)
        device.client.flush()
    return len(device.wire.reports) - before


TWICE = {"unit": "event", "per_day": 2, "epsilon": 1, **TEN_DAYS}


@pytest.mark.parametrize("name", ["a", "b"], ids=["redefined", "renamed"])
def test_a_redefinition_spends_only_what_is_left(tmp_path: Path, name: str) -> None:
    """Under a new fingerprint, and under a new name, the old account goes on: 20 in all."""
    clock = clock_at(at(0, 9))
    device = Device(tmp_path, file(a=TWICE), clock, Wire(clock))
    before = spend(device, "a", range(7))
    device.stop()
    renamed = {"replaces": "a"} if name == "b" else {}
    device.start(file(**{name: {**TWICE, **renamed, "until": "2026-12-31", "answers": 10}}))
    device.client.consent(True)
    after = spend(device, name, range(7, 30))
    account = device.worker.state.spent(device.client._session.key(""))

    assert before == 14
    assert after <= 6
    assert {name: each.life for name, each in account.items()} == {"a": (before + after) * 10**6}


def test_a_redefinition_on_the_same_day_has_what_is_left_of_the_day(tmp_path: Path) -> None:
    """The day's cap is of the account, not of the fingerprint."""
    clock = clock_at(at(0, 9))
    device = Device(tmp_path, file(a=TWICE), clock, Wire(clock))
    assert spend(device, "a", [0]) == 2
    device.stop()
    device.start(file(a={**TWICE, "takes": "first", "late": 7}))
    device.client.consent(True)

    assert spend(device, "a", [0]) == 0
    assert device.worker.state.losses()[Loss.OVER_CAP, "a"] == 2
    assert spend(device, "a", [1]) == 2


def test_no_refusal_depends_on_what_was_recorded(tmp_path: Path) -> None:
    """A busy state and an idle one accept and refuse the same of a next file."""
    clock = clock_at(at(0, 9))
    later = ten_days(a={"epsilon": 2}, b={"epsilon": 1, "replaces": "x"}, c=3, d=1)
    told = []
    for place, days in (("busy", range(9)), ("idle", range(0))):
        device = Device(tmp_path / place, ten_days(x=1, a=1, c=2), clock, Wire(clock))
        for name in ("x", "a", "c"):
            spend(device, name, days)
        device.stop()
        device.start(later)
        told.append((device.client.reservation, sorted(device.client.reservation.claims)))

    assert told[0] == told[1]
    assert told[0][0].refused


def test_one_collections_spend_leaves_anothers_alone(tmp_path: Path) -> None:
    """A collection that is spent out takes nothing from its neighbour."""
    clock = clock_at(at(0, 9))
    device = Device(tmp_path, file(a=TWICE, b=TWICE), clock, Wire(clock))

    assert [spend(device, name, range(12)) for name in ("a", "b")] == [20, 20]


# -- whatever the files ----------------------------------------------------------------------------

Table = dict[str, object]


@st.composite
def tables(draw: st.DrawFn) -> dict[str, Table]:
    """Return a file of a few collections; some in a cohort, some renamed."""
    names = draw(st.lists(st.sampled_from("abcd"), min_size=1, max_size=3, unique=True))
    found: dict[str, Table] = {}
    for name in names:
        keys: Table = {"epsilon": draw(st.integers(1, 4))}
        if draw(st.booleans()):
            keys["cohort"] = {"draw": "d", "of": 2, "number": draw(st.integers(0, 1))}
        old = draw(st.sampled_from(["a", "b", "c", "d", None]))
        if old not in {None, *names, *(each.get("replaces") for each in found.values())}:
            keys["replaces"] = old
        found[name] = keys
    return found


def worst(
    accounts: dict[int, dict[str, int]], files: Mapping[str, Collection], loaded: Reservation
) -> None:
    """Have one person of each cohort spend all that the accepted collections allow."""
    for person, account in accounts.items():
        for name, claim in loaded.claims.items():
            cohort = files[name].cohort
            if cohort is None or cohort.number == person:
                account[claim.lineage] = max(account[claim.lineage], claim.life)


@settings(max_examples=150)
@given(st.lists(tables(), min_size=1, max_size=5))
def test_however_files_follow_each_other_nobody_exceeds_the_ceiling(
    files: list[dict[str, Table]],
) -> None:
    """Persons of both cohorts who always spend all they may stay below the first file's sum."""
    accounts: dict[int, dict[str, int]] = {0: defaultdict(int), 1: defaultdict(int)}
    with tempfile.TemporaryDirectory(dir=quick()) as place:
        state = SqliteState(place)
        for each in files:
            collections = ten_days(**each)
            loaded = reserve(state, collections.values())
            worst(accounts, collections, loaded)
        state.close()

    assert all(sum(each.values()) <= loaded.ceilings.life for each in accounts.values())
