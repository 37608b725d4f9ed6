"""When a person answers, in which slot, under which name: from secret and calendar alone."""

from __future__ import annotations

import hmac
import json
import struct
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta, timezone
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.properties.definition_harness import no_values_file
from veilcount_client.testing import SeededRandomSource
from veilcount_shared import periods, schedule
from veilcount_shared.collection import (
    Adjacency,
    Cohort,
    Collection,
    Linkage,
    Model,
    parse_collections,
)
from veilcount_shared.domain import Boolean
from veilcount_shared.periods import Unit

SECRET = bytes(range(32))
OTHER = bytes(32)
SECRETS = [number.to_bytes(32, "big") for number in range(60)]


def asking(unit: Unit, start: str, until: str, **more: Any) -> Collection:
    """Return a collection about nothing, with this calendar."""
    return Collection(
        **{
            "app": "acme",
            "name": "q",
            "question": "Is it?",
            "domain": Boolean(),
            "epsilon": Fraction(1),
            "unit": unit,
            "start": date.fromisoformat(start),
            "until": date.fromisoformat(until),
            **more,
        }
    )


MONTHLY = asking(Unit.MONTH, "2026-12-01", "2027-12-01")
DAILY = asking(Unit.DAY, "2026-12-01", "2027-03-01")
EVENTS = asking(Unit.EVENT, "2026-12-01", "2027-03-01", per_period=5)


# -- the calendar at its edges ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("unit", "start", "day", "number"),
    [
        ("day", "2026-12-01", "2026-12-01", 0),
        ("day", "2026-12-01", "2026-11-30", -1),
        ("day", "2026-12-31", "2027-01-01", 1),
        ("day", "2028-02-28", "2028-02-29", 1),
        ("day", "2028-02-28", "2028-03-01", 2),  # a leap year
        ("day", "2027-02-28", "2027-03-01", 1),  # and none
        ("day", "2100-02-28", "2100-03-01", 1),  # nor is 2100
        ("day", "2000-02-28", "2000-03-01", 2),  # but 2000 is
        ("event", "2028-02-28", "2028-03-01", 2),
        ("week", "2026-12-01", "2026-12-06", 0),  # from a Tuesday to its Sunday
        ("week", "2026-12-01", "2026-12-07", 1),  # the Monday after
        ("week", "2026-12-01", "2026-11-30", 0),  # the Monday before is of the same week
        ("week", "2026-12-01", "2026-11-29", -1),
        ("week", "2026-12-28", "2027-01-03", 0),  # ISO week 53 of 2026 ends in 2027
        ("week", "2026-12-28", "2027-01-04", 1),
        ("week", "2027-01-01", "2027-01-03", 0),  # a Friday: the week began in 2026
        ("week", "2027-01-03", "2027-01-04", 1),  # a Sunday
        ("month", "2026-12-01", "2026-12-31", 0),
        ("month", "2026-12-01", "2027-01-01", 1),
        ("month", "2026-12-15", "2027-01-01", 1),  # not a month after the 15th: calendar months
        ("month", "2026-12-31", "2027-01-31", 1),
        ("month", "2028-01-31", "2028-02-29", 1),
        ("month", "2026-12-15", "2026-11-30", -1),
        ("month", "2026-12-01", "2028-12-01", 24),
        ("user", "2026-12-01", "2026-12-01", 0),
        ("user", "2026-12-01", "2099-12-01", 0),
        ("user", "2026-12-01", "2026-11-30", -1),
    ],
)
def test_a_day_lies_in_the_period_of_its_calendar_stretch(
    unit: Unit, start: str, day: str, number: int
) -> None:
    found = periods.period_number(Unit(unit), date.fromisoformat(start), date.fromisoformat(day))

    assert found == number


@pytest.mark.parametrize(
    ("unit", "start", "until", "count"),
    [
        ("day", "2026-12-01", "2026-12-02", 1),
        ("day", "2028-01-01", "2029-01-01", 366),
        ("event", "2027-01-01", "2028-01-01", 365),
        ("week", "2026-12-01", "2026-12-07", 1),
        ("week", "2026-12-06", "2026-12-08", 2),  # a Sunday and a Monday
        ("week", "2026-11-30", "2026-12-14", 2),
        ("month", "2026-12-31", "2027-01-02", 2),  # two days, two months
        ("month", "2026-12-15", "2027-12-15", 13),  # both ends cut
        ("month", "2026-12-01", "2027-12-01", 12),
        ("user", "2000-01-01", "2100-01-01", 1),
    ],
)
def test_a_campaign_touches_every_stretch_it_has_a_day_in(
    unit: Unit, start: str, until: str, count: int
) -> None:
    assert asking(Unit(unit), start, until).periods == count


@pytest.mark.parametrize(
    ("unit", "period", "opens", "closes"),
    [
        ("day", 0, "2026-12-15", "2026-12-16"),
        ("day", 17, "2027-01-01", "2027-01-02"),
        ("event", 89, "2027-03-14", "2027-03-15"),
        ("week", 0, "2026-12-15", "2026-12-21"),  # a Tuesday: cut
        ("week", 2, "2026-12-28", "2027-01-04"),
        ("week", 12, "2027-03-08", "2027-03-15"),  # ends with the campaign, on a Sunday
        ("month", 0, "2026-12-15", "2027-01-01"),  # cut
        ("month", 1, "2027-01-01", "2027-02-01"),
        ("month", 3, "2027-03-01", "2027-03-15"),  # cut
        ("user", 0, "2026-12-15", "2027-03-15"),
    ],
)
def test_a_period_opens_and_closes_at_midnight_utc_within_the_campaign(
    unit: Unit, period: int, opens: str, closes: str
) -> None:
    collection = asking(Unit(unit), "2026-12-15", "2027-03-15")

    assert schedule.period_start(collection, period).isoformat() == f"{opens}T00:00:00+00:00"
    assert schedule.period_end(collection, period).isoformat() == f"{closes}T00:00:00+00:00"


DAYS = st.dates(date(2000, 1, 1), date(2998, 12, 31))


@st.composite
def campaigns(draw: st.DrawFn) -> Collection:
    """Draw a collection of any unit and dates, not too long to walk through."""
    unit, start = draw(st.sampled_from(Unit)), draw(DAYS)
    longest = {Unit.WEEK: 2500, Unit.MONTH: 20_000, Unit.USER: 36_525}.get(unit, 366)
    until = start + timedelta(days=draw(st.integers(1, longest)))
    until = min(until, date(2999, 12, 31))
    return asking(unit, str(start), str(until), linkage=Linkage.PERIOD)


@given(campaigns())
@settings(max_examples=150, deadline=None, derandomize=True)
def test_periods_partition_the_campaign_without_a_gap(collection: Collection) -> None:
    everyone = range(collection.periods)
    opens = [schedule.period_start(collection, period) for period in everyone]
    closes = [schedule.period_end(collection, period) for period in everyone]

    assert opens[1:] == closes[:-1]
    assert all(one < two for one, two in pairwise([*opens, closes[-1]]))
    assert (opens[0].date(), closes[-1].date()) == (collection.start, collection.until)


@given(campaigns(), st.integers(0, 2**64), st.integers(-1439, 1439))
@settings(max_examples=300, deadline=None, derandomize=True)
def test_an_instant_lies_in_the_period_that_is_open_then(
    collection: Collection, draw: int, minutes: int
) -> None:
    start = schedule.period_start(collection, 0)
    length = schedule.period_end(collection, collection.periods - 1) - start
    now = start + timedelta(microseconds=draw % (length // timedelta(microseconds=1)))
    period = schedule.period_at(collection, now.astimezone(timezone(timedelta(minutes=minutes))))

    assert period is not None
    assert (
        schedule.period_start(collection, period) <= now < schedule.period_end(collection, period)
    )


@given(campaigns())
@settings(max_examples=100, deadline=None, derandomize=True)
def test_the_edges_of_a_period_belong_to_it_and_to_the_next(collection: Collection) -> None:
    tick = timedelta(microseconds=1)
    for period in {0, collection.periods // 2, collection.periods - 1}:
        opens, closes = (
            schedule.period_start(collection, period),
            schedule.period_end(collection, period),
        )
        following = period + 1 if period + 1 < collection.periods else None

        assert schedule.period_at(collection, opens) == period
        assert schedule.period_at(collection, closes - tick) == period
        assert schedule.period_at(collection, closes) == following


def test_an_instant_outside_the_campaign_lies_in_no_period() -> None:
    collection = asking(Unit.MONTH, "2026-12-15", "2027-03-15")
    before, after = datetime(2026, 12, 14, 23, 59, tzinfo=UTC), datetime(2027, 3, 15, tzinfo=UTC)

    assert schedule.period_at(collection, before) is None
    assert schedule.period_at(collection, after) is None


@pytest.mark.parametrize("now", [datetime(2027, 1, 1), datetime(1999, 1, 1, 12)])  # noqa: DTZ001 - naive on purpose
def test_an_instant_without_a_time_zone_is_refused(now: datetime) -> None:
    """Within the campaign and outside: the machine's own zone must not decide."""
    with pytest.raises(ValueError, match="needs its time zone"):
        schedule.period_at(MONTHLY, now)


def test_a_local_midnight_is_counted_in_utc() -> None:
    east, west = (timezone(timedelta(hours=hours)) for hours in (1, -1))

    assert schedule.period_at(MONTHLY, datetime(2027, 1, 1, 0, 30, tzinfo=east)) == 0
    assert schedule.period_at(MONTHLY, datetime(2026, 12, 31, 23, 30, tzinfo=west)) == 1


# -- answering periods -----------------------------------------------------------------------------


@pytest.mark.parametrize("answers", [1, 2, 45, 89, 90])
def test_a_person_answers_in_exactly_as_many_periods_as_allowed(answers: int) -> None:
    collection = replace(DAILY, answers=answers)
    drawn = [schedule.draw_answering_periods(secret, collection) for secret in SECRETS]

    assert {len(each) for each in drawn} == {answers}
    assert all(each <= set(range(90)) for each in drawn)


def test_without_answers_a_person_answers_in_all_periods() -> None:
    assert schedule.draw_answering_periods(SECRET, DAILY) == frozenset(range(90))


# -- instants --------------------------------------------------------------------------------------


def test_an_instant_lies_within_its_period_on_a_whole_second() -> None:
    for period in range(EVENTS.periods):
        for answer in range(EVENTS.per_period):
            instant = schedule.draw_instant(SECRET, EVENTS, period, answer)

            assert schedule.period_at(EVENTS, instant) == period
            assert instant.microsecond == 0


def test_the_first_answer_is_the_one_that_is_meant() -> None:
    assert schedule.draw_instant(SECRET, EVENTS, 3) == schedule.draw_instant(SECRET, EVENTS, 3, 0)


def test_answers_of_one_period_have_instants_of_their_own() -> None:
    instants = {schedule.draw_instant(SECRET, EVENTS, 3, answer) for answer in range(5)}

    assert len(instants) == 5


# -- slots -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("period", [0, 1, 89])
def test_the_answers_of_a_period_take_its_slots_each_once(period: int) -> None:
    slots = [schedule.draw_slot(SECRET, EVENTS, period, answer) for answer in range(5)]

    assert sorted(slots) == [0, 1, 2, 3, 4]


def test_the_order_of_slots_differs_between_periods() -> None:
    orders = {
        tuple(schedule.draw_slot(SECRET, EVENTS, period, answer) for answer in range(5))
        for period in range(90)
    }

    assert len(orders) > 50


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


def names(collection: Collection, secret: bytes = SECRET, times: int = 2) -> list[bytes]:
    """Return the pseudonyms of the first ten periods, each asked for as often."""
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
def test_a_pseudonym_reaches_as_far_as_the_linkage_says(linkage: Linkage, different: int) -> None:
    drawn = names(replace(DAILY, linkage=linkage))

    assert len(set(drawn)) == different
    assert {len(each) for each in drawn} == {16}


@pytest.mark.parametrize("linkage", [Linkage.COLLECTION, Linkage.PERIOD])
@pytest.mark.parametrize(
    "change", [{"name": "p"}, {"app": "other"}, {"late": 31}, {"epsilon": Fraction(2)}]
)
def test_pseudonyms_of_different_series_share_nothing(
    linkage: Linkage, change: dict[str, Any]
) -> None:
    collection = replace(DAILY, linkage=linkage)

    assert not set(names(collection)) & set(names(replace(collection, **change)))


@pytest.mark.parametrize("linkage", [Linkage.COLLECTION, Linkage.PERIOD])
def test_pseudonyms_of_different_persons_share_nothing(linkage: Linkage) -> None:
    collection = replace(DAILY, linkage=linkage)

    assert not set(names(collection)) & set(names(collection, OTHER))


def test_a_fresh_pseudonym_does_not_depend_on_the_secret() -> None:
    collection = replace(DAILY, linkage=Linkage.NONE)

    assert names(collection) == names(collection, OTHER)


def test_a_fresh_pseudonym_is_made_of_all_bytes() -> None:
    drawn = b"".join(names(replace(DAILY, linkage=Linkage.NONE), times=26))

    assert set(drawn) == set(range(256))


# -- who is asked ----------------------------------------------------------------------------------

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


def test_a_person_is_asked_by_exactly_one_of_two_twins() -> None:
    asked = [(schedule.is_selected(one, NEAR), schedule.is_selected(one, FAR)) for one in SECRETS]

    assert set(asked) == {(True, False), (False, True)}


def test_a_twins_coin_is_the_one_of_the_protocol() -> None:
    randomness = [
        schedule.SecretRandomSource(one, "twin", "acme", "far", "near") for one in SECRETS
    ]

    assert [schedule.is_selected(one, NEAR) for one in SECRETS] == [
        each.below(2) == 1 for each in randomness
    ]


def test_a_person_is_asked_by_exactly_one_cohort_of_a_draw() -> None:
    cohorts = [replace(MONTHLY, cohort=Cohort("spring", 3, number)) for number in range(3)]
    asked = [tuple(schedule.is_selected(one, each) for each in cohorts) for one in SECRETS]

    assert set(asked) == {(True, False, False), (False, True, False), (False, False, True)}


def test_all_collections_of_a_cohort_ask_the_same_persons() -> None:
    cohort = Cohort("spring", 3, 1)
    one, two = replace(MONTHLY, cohort=cohort), replace(DAILY, name="p", cohort=cohort)

    assert all(
        schedule.is_selected(each, one) == schedule.is_selected(each, two) for each in SECRETS
    )


def test_another_draw_another_app_and_another_number_of_cohorts_divide_otherwise() -> None:
    """So that one experiment does not follow another."""
    divisions = {
        tuple(schedule.draw_cohort(secret, app, draw, of) % 2 for secret in SECRETS)
        for app, draw, of in [
            ("acme", "spring", 2),
            ("acme", "summer", 2),
            ("other", "spring", 2),
            ("acme", "spring", 4),
        ]
    }

    assert len(divisions) == 4


def test_a_twin_within_a_cohort_asks_its_share_of_the_cohort() -> None:
    cohort = Cohort("spring", 2, 0)
    near, far = replace(NEAR, cohort=cohort), replace(FAR, cohort=cohort)
    alone = replace(MONTHLY, cohort=cohort)
    asked = [schedule.is_selected(one, near) + schedule.is_selected(one, far) for one in SECRETS]

    assert asked == [int(schedule.is_selected(one, alone)) for one in SECRETS]
    assert {0, 1} == set(asked)


def test_a_twins_coin_outlives_a_redefinition() -> None:
    """Else a person could be asked by both, one after the other."""
    changed = replace(NEAR, epsilon=Fraction(2), question="Is it still?")

    assert all(
        schedule.is_selected(one, NEAR) == schedule.is_selected(one, changed) for one in SECRETS
    )


def test_everybody_is_asked_without_twin_and_cohort() -> None:
    assert all(schedule.is_selected(one, MONTHLY) for one in SECRETS)


# -- a pure function of secret and definition ------------------------------------------------------


def everything(secret: bytes, collection: Collection) -> list[object]:
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


def test_the_same_secret_draws_the_same_again() -> None:
    collection = replace(EVENTS, answers=10)
    reworded = replace(collection, question="Was it?", owner="Ada", purpose="why not")

    assert everything(SECRET, collection) == everything(SECRET, collection)
    assert everything(SECRET, collection) == everything(SECRET, reworded)


def test_another_secret_draws_everything_otherwise() -> None:
    collection = replace(EVENTS, answers=10)
    pairs = zip(everything(SECRET, collection), everything(OTHER, collection), strict=True)

    assert all(one != two for one, two in pairs)


def test_another_series_draws_everything_otherwise() -> None:
    collection = replace(EVENTS, answers=10)
    renamed = replace(collection, name="p")
    pairs = zip(everything(SECRET, collection), everything(SECRET, renamed), strict=True)

    assert all(one != two for one, two in pairs)


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
def test_the_coins_of_a_secret_are_pinned(vector: dict[str, Any]) -> None:
    randomness = schedule.SecretRandomSource(bytes.fromhex(vector["secret"]), *vector["purpose"])

    assert [f"{randomness.word():016x}" for _ in vector["words"]] == vector["words"]


@pytest.mark.parametrize("vector", VECTORS["words"])
def test_the_pinned_coins_are_what_the_file_says_they_are(vector: dict[str, Any]) -> None:
    fields = [str(field).encode() for field in ("veilcount", 1, *vector["purpose"])]
    spelled = b"".join(struct.pack(">I", len(field)) + field for field in fields)
    blocks = (
        hmac.digest(bytes.fromhex(vector["secret"]), spelled + struct.pack(">Q", block), "sha256")
        for block in range(2)
    )
    stream = b"".join(blocks).hex()

    assert [stream[16 * w : 16 * w + 16] for w in range(len(vector["words"]))] == vector["words"]
