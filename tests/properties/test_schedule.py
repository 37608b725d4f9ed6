"""When a person responds, in which slot, under which pseudonym: from secret and calendar alone."""

from __future__ import annotations

import hmac
import json
import struct
from dataclasses import replace
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from tests.properties.definition_harness import calendar_of, no_values_file
from veilcount_client.testing import SeededRandomSource
from veilcount_shared import schedule
from veilcount_shared.collection import (
    Adjacency,
    Cohort,
    Collection,
    Linkage,
    Model,
    parse_collections,
)
from veilcount_shared.periods import Unit

SECRET = bytes(range(32))
OTHER = bytes(32)
SECRETS = [number.to_bytes(32, "big") for number in range(60)]


MONTHLY = calendar_of(Unit.MONTH, "2026-12-01", "2027-12-01")
DAILY = calendar_of(Unit.DAY, "2026-12-01", "2027-03-01")
EVENTS = calendar_of(Unit.EVENT, "2026-12-01", "2027-03-01", per_period=5)


# -- answering periods -----------------------------------------------------------------------------


@pytest.mark.parametrize("answers", [1, 2, 45, 89, 90])
def test_a_person_answers_in_exactly_as_many_periods_as_allowed(answers: int) -> None:
    collection = replace(DAILY, answers=answers)
    drawn = [schedule.draw_answering_periods(secret, collection) for secret in SECRETS]

    assert {len(each) for each in drawn} == {answers}
    assert all(each <= set(range(90)) for each in drawn)


def test_by_default_a_person_answers_in_all_periods() -> None:
    assert schedule.draw_answering_periods(SECRET, DAILY) == frozenset(range(90))


# -- instants --------------------------------------------------------------------------------------


def test_an_instant_lies_within_its_period_on_a_whole_second() -> None:
    for period, answer in product(range(EVENTS.periods), range(EVENTS.per_period)):
        instant = schedule.draw_instant(SECRET, EVENTS, period, answer)

        assert schedule.period_at(EVENTS, instant) == period
        assert instant.microsecond == 0


def test_the_answers_of_one_period_have_different_instants() -> None:
    instants = [schedule.draw_instant(SECRET, EVENTS, 3, answer) for answer in range(5)]

    assert len(set(instants)) == 5
    assert instants[0] == schedule.draw_instant(SECRET, EVENTS, 3)  # the default


# -- slots -----------------------------------------------------------------------------------------


def test_the_answers_of_a_period_take_its_slots_in_an_order_of_its_own() -> None:
    """A slot number does not reveal how many answers came before."""
    orders = [
        tuple(schedule.draw_slot(SECRET, EVENTS, period, answer) for answer in range(5))
        for period in range(90)
    ]

    assert {tuple(sorted(order)) for order in orders} == {(0, 1, 2, 3, 4)}
    assert len(set(orders)) > 50


def test_slots_of_a_linked_campaign_are_each_used_once() -> None:
    linked = replace(EVENTS, linkage=Linkage.COLLECTION)
    slots = [
        [schedule.draw_slot(SECRET, linked, p, answer) for answer in range(5)] for p in range(90)
    ]

    assert sorted(slot for each in slots for slot in each) == list(range(linked.slots))
    assert all({slot // 5 for slot in each} == {period} for period, each in enumerate(slots))


def test_an_unlinked_report_has_slot_zero() -> None:
    unlinked = replace(EVENTS, linkage=Linkage.NONE)

    assert {schedule.draw_slot(SECRET, unlinked, 7, answer) for answer in range(5)} == {0}


# -- pseudonyms ------------------------------------------------------------------------------------


def pseudonyms(collection: Collection, secret: bytes = SECRET, times: int = 2) -> list[bytes]:
    """Return the pseudonyms of the first ten periods, each derived so often."""
    randomness = SeededRandomSource(1)
    return [
        schedule.derive_pseudonym(secret, collection, period, randomness)
        for period in range(10)
        for _ in range(times)
    ]


@pytest.mark.parametrize(
    ("linkage", "different"),
    [(Linkage.COLLECTION, 1), (Linkage.PERIOD, 10), (Linkage.NONE, 20)],
)
def test_a_pseudonym_changes_as_the_linkage_states(linkage: Linkage, different: int) -> None:
    drawn = pseudonyms(replace(DAILY, linkage=linkage))

    assert len(set(drawn)) == different
    assert {len(each) for each in drawn} == {16}


@pytest.mark.parametrize("linkage", [Linkage.COLLECTION, Linkage.PERIOD])
@pytest.mark.parametrize(
    ("change", "secret"),
    [
        ({"name": "p"}, SECRET),
        ({"app": "other"}, SECRET),
        ({"late": 31}, SECRET),
        ({"epsilon": Fraction(2)}, SECRET),
        ({}, OTHER),
    ],
)
def test_pseudonyms_of_other_series_and_persons_share_nothing(
    linkage: Linkage, change: dict[str, Any], secret: bytes
) -> None:
    collection = replace(DAILY, linkage=linkage)
    other = pseudonyms(replace(collection, **change), secret)

    assert not set(pseudonyms(collection)) & set(other)


def test_a_fresh_pseudonym_does_not_depend_on_the_secret() -> None:
    collection = replace(DAILY, linkage=Linkage.NONE)

    assert pseudonyms(collection) == pseudonyms(collection, OTHER)


def test_a_fresh_pseudonym_is_made_of_all_bytes() -> None:
    drawn = b"".join(pseudonyms(replace(DAILY, linkage=Linkage.NONE), times=26))

    assert set(drawn) == set(range(256))


# -- selection into twins and cohorts -------------------------------------------------------------

NEAR = replace(MONTHLY, name="near", twin="far")
FAR = replace(
    MONTHLY,
    name="far",
    twin="near",
    model=Model.CENTRAL,
    epsilon=None,
    budget=Fraction(1),
    adjacency=Adjacency.ADD_REMOVE,
)
COHORTS = [replace(MONTHLY, cohort=Cohort("spring", 3, number)) for number in range(3)]


def selected(*collections: Collection) -> list[tuple[bool, ...]]:
    """Return for each person which of the collections select them."""
    return [tuple(schedule.is_selected(secret, each) for each in collections) for secret in SECRETS]


def test_a_person_is_selected_by_exactly_one_of_two_twins() -> None:
    assert set(selected(NEAR, FAR)) == {(True, False), (False, True)}


def test_a_person_is_selected_by_exactly_one_cohort_of_a_draw() -> None:
    exactly_one = {(True, False, False), (False, True, False), (False, False, True)}

    assert set(selected(*COHORTS)) == exactly_one


def test_without_twin_and_cohort_everybody_is_selected() -> None:
    assert set(selected(MONTHLY)) == {(True,)}


def test_the_draw_between_twins_is_the_one_of_the_protocol() -> None:
    """Its purpose is the word `twin`, the app and both names, sorted."""
    sources = [schedule.SecretRandomSource(one, "twin", "acme", "far", "near") for one in SECRETS]

    assert selected(NEAR) == [(each.below(2) == 1,) for each in sources]


def test_all_collections_of_a_cohort_select_the_same_persons() -> None:
    assert selected(COHORTS[1]) == selected(replace(DAILY, name="p", cohort=COHORTS[1].cohort))


def test_another_draw_app_or_number_of_cohorts_divides_persons_otherwise() -> None:
    """So that one experiment does not follow another."""
    draws = [("acme", "spring", 2), ("acme", "summer", 2), ("other", "spring", 2)]
    divisions = {
        tuple(schedule.draw_cohort(secret, app, draw, of) % 2 for secret in SECRETS)
        for app, draw, of in [*draws, ("acme", "spring", 4)]
    }

    assert len(divisions) == 4


def test_a_twin_within_a_cohort_selects_its_share_of_the_cohort() -> None:
    cohort = Cohort("spring", 2, 0)
    both = selected(replace(NEAR, cohort=cohort), replace(FAR, cohort=cohort))
    alone = selected(replace(MONTHLY, cohort=cohort))

    assert [(any(each),) for each in both] == alone
    assert {sum(each) for each in both} == {0, 1}


def test_the_draw_between_twins_outlives_a_redefinition() -> None:
    """Else a person could be selected by both, one after the other."""
    changed = replace(NEAR, epsilon=Fraction(2), question="Is it still?")

    assert selected(NEAR) == selected(changed)


# -- a pure function of secret and definition ------------------------------------------------------


def all_draws(secret: bytes, collection: Collection) -> list[object]:
    """Return all that is drawn for a person before any data exists."""
    return [
        sorted(schedule.draw_answering_periods(secret, collection)),
        [schedule.draw_instant(secret, collection, period) for period in range(5)],
        [schedule.draw_slot(secret, collection, period, 0) for period in range(5)],
        [
            schedule.derive_pseudonym(secret, collection, period, SeededRandomSource(1))
            for period in range(5)
        ],
    ]


def test_the_same_secret_draws_the_same() -> None:
    collection = replace(EVENTS, answers=10)
    reworded = replace(collection, question="Was it?", owner="Ada", purpose="why not")

    assert all_draws(SECRET, collection) == all_draws(SECRET, collection)
    assert all_draws(SECRET, collection) == all_draws(SECRET, reworded)


def test_another_secret_or_series_draws_everything_otherwise() -> None:
    collection = replace(EVENTS, answers=10)
    drawn = all_draws(SECRET, collection)

    for other in (all_draws(OTHER, collection), all_draws(SECRET, replace(collection, name="p"))):
        assert all(one != two for one, two in zip(drawn, other, strict=True))


@pytest.mark.parametrize("secret", [b"", bytes(31), bytes(33)])
def test_a_secret_of_another_length_is_refused(secret: bytes) -> None:
    with pytest.raises(ValueError, match="32 bytes"):
        schedule.draw_answering_periods(secret, replace(MONTHLY, answers=3))


# -- pinned ----------------------------------------------------------------------------------------

_FILE = Path(__file__).parents[1] / "vectors" / "schedule.json"
VECTORS: dict[str, Any] = json.loads(_FILE.read_text(encoding="utf-8"))


@pytest.mark.parametrize("vector", VECTORS["persons"], ids=lambda vector: vector["collection"])
def test_a_schedule_is_pinned(vector: dict[str, Any]) -> None:
    collection = parse_collections("\n".join(VECTORS["toml"]), no_values_file)[vector["collection"]]
    secret, randomness = bytes.fromhex(vector["secret"]), SeededRandomSource(0)

    assert collection.fingerprint == vector["fingerprint"]
    assert schedule.is_selected(secret, collection) is vector["asked"]
    assert (
        sorted(schedule.draw_answering_periods(secret, collection)) == vector["answering periods"]
    )
    for pinned in vector["answers"]:
        period, answer = pinned["period"], pinned["answer"]
        instant = schedule.draw_instant(secret, collection, period, answer)

        assert instant.isoformat() == pinned["instant"]
        assert schedule.draw_slot(secret, collection, period, answer) == pinned["slot"]
        if pinned["pseudonym"] is not None:
            name = schedule.derive_pseudonym(secret, collection, period, randomness)
            assert name.hex() == pinned["pseudonym"]


@pytest.mark.parametrize("vector", VECTORS["cohorts"])
def test_a_cohort_is_pinned(vector: dict[str, Any]) -> None:
    secret = bytes.fromhex(vector["secret"])

    assert (
        schedule.draw_cohort(secret, vector["app"], vector["draw"], vector["of"])
        == vector["cohort"]
    )


@pytest.mark.parametrize("vector", VECTORS["words"])
def test_the_randomness_of_a_secret_is_pinned(vector: dict[str, Any]) -> None:
    randomness = schedule.SecretRandomSource(bytes.fromhex(vector["secret"]), *vector["purpose"])

    assert [f"{randomness.word():016x}" for _ in vector["words"]] == vector["words"]


@pytest.mark.parametrize("vector", VECTORS["words"])
def test_the_pinned_randomness_is_an_hmac_of_its_purpose(vector: dict[str, Any]) -> None:
    fields = [str(field).encode() for field in ("veilcount", 1, *vector["purpose"])]
    purpose = b"".join(struct.pack(">I", len(field)) + field for field in fields)
    blocks = (
        hmac.digest(bytes.fromhex(vector["secret"]), purpose + struct.pack(">Q", block), "sha256")
        for block in range(2)
    )
    stream = b"".join(blocks).hex()

    assert [stream[16 * w : 16 * w + 16] for w in range(len(vector["words"]))] == vector["words"]
