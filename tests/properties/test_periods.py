"""Periods of a campaign: calendar units in UTC, at their edges."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.properties.definition_harness import calendar_of
from veilcount_shared import periods, schedule
from veilcount_shared.collection import (
    Collection,
    Linkage,
)
from veilcount_shared.periods import Unit

MONTHLY = calendar_of(Unit.MONTH, "2026-12-01", "2027-12-01")


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
def test_a_day_lies_in_its_calendar_period(unit: Unit, start: str, day: str, number: int) -> None:
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
def test_a_campaign_has_every_period_it_has_a_day_in(
    unit: Unit, start: str, until: str, count: int
) -> None:
    assert calendar_of(Unit(unit), start, until).periods == count


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
    collection = calendar_of(Unit(unit), "2026-12-15", "2027-03-15")

    assert schedule.period_start(collection, period).isoformat() == f"{opens}T00:00:00+00:00"
    assert schedule.period_end(collection, period).isoformat() == f"{closes}T00:00:00+00:00"


@pytest.mark.parametrize(
    ("unit", "period", "first", "after"),
    [
        ("day", 17, "2027-01-01", "2027-01-02"),
        ("week", 0, "2026-12-14", "2026-12-21"),
        ("month", 0, "2026-12-01", "2027-01-01"),
        ("month", 3, "2027-03-01", "2027-04-01"),
        ("user", 0, "2026-12-15", "2027-03-15"),
    ],
)
def test_a_calendar_range_is_not_cut_by_the_campaign(
    unit: str, period: int, first: str, after: str
) -> None:
    start, until = date(2026, 12, 15), date(2027, 3, 15)
    found = periods.calendar_range(Unit(unit), start, until, period)

    assert [day.isoformat() for day in found] == [first, after]


DAYS = st.dates(date(2000, 1, 1), date(2998, 12, 31))


@st.composite
def campaigns(draw: st.DrawFn) -> Collection:
    """Draw a collection of any unit and dates, not too long to walk through."""
    unit, start = draw(st.sampled_from(Unit)), draw(DAYS)
    longest = {Unit.WEEK: 2500, Unit.MONTH: 20_000, Unit.USER: 36_525}.get(unit, 366)
    until = start + timedelta(days=draw(st.integers(1, longest)))
    until = min(until, date(2999, 12, 31))
    return calendar_of(unit, str(start), str(until), linkage=Linkage.PERIOD)


@given(campaigns())
@settings(max_examples=150)
def test_periods_partition_the_campaign_without_a_gap(collection: Collection) -> None:
    all_periods = range(collection.periods)
    opens = [schedule.period_start(collection, period) for period in all_periods]
    closes = [schedule.period_end(collection, period) for period in all_periods]

    assert opens[1:] == closes[:-1]
    assert all(one < two for one, two in pairwise([*opens, closes[-1]]))
    assert (opens[0].date(), closes[-1].date()) == (collection.start, collection.until)


@given(campaigns())
@settings(max_examples=100)
def test_a_period_holds_its_first_instant_and_not_its_last(collection: Collection) -> None:
    tick = timedelta(microseconds=1)
    for period in {0, collection.periods // 2, collection.periods - 1}:
        opens = schedule.period_start(collection, period)
        closes = schedule.period_end(collection, period)
        following = period + 1 if period + 1 < collection.periods else None

        assert schedule.period_at(collection, opens) == period
        assert schedule.period_at(collection, closes - tick) == period
        assert schedule.period_at(collection, closes) == following


@given(campaigns(), st.integers(0, 2**64), st.integers(-1439, 1439))
@settings(max_examples=200)
def test_an_instant_lies_in_the_period_that_is_open(
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


def test_an_instant_outside_the_campaign_lies_in_no_period() -> None:
    collection = calendar_of(Unit.MONTH, "2026-12-15", "2027-03-15")
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
