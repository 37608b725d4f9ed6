"""Periods of a campaign: calendar units in UTC, at their edges."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from veilcount_shared import periods, schedule
from veilcount_shared.collection import Collection, Linkage
from veilcount_shared.periods import Unit

from .definition_harness import calendar_of

MONTHLY = calendar_of(Unit.MONTH, "2026-12-01", "2027-12-01")


# -- the calendar at its edges ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("unit", "start", "day", "number"),
    [
        ("day", "2026-12-01", "2026-11-30", -1),
        ("day", "2028-02-28", "2028-03-01", 2),  # a leap year
        ("day", "2100-02-28", "2100-03-01", 1),  # and none
        ("event", "2028-02-28", "2028-03-01", 2),
        ("week", "2026-12-01", "2026-12-06", 0),  # from a Tuesday to its Sunday
        ("week", "2026-12-01", "2026-12-07", 1),  # the Monday after
        ("week", "2026-12-01", "2026-11-30", 0),  # the Monday before is of the same week
        ("week", "2026-12-01", "2026-11-29", -1),
        ("week", "2026-12-28", "2027-01-03", 0),  # ISO week 53 of 2026 ends in 2027
        ("week", "2027-01-03", "2027-01-04", 1),  # a Sunday
        ("month", "2026-12-01", "2026-12-31", 0),
        ("month", "2026-12-15", "2027-01-01", 1),  # not a month after the 15th: calendar months
        ("month", "2028-01-31", "2028-02-29", 1),
        ("month", "2026-12-15", "2026-11-30", -1),
        ("month", "2026-12-01", "2028-12-01", 24),
        ("user", "2026-12-01", "2099-12-01", 0),
        ("user", "2026-12-01", "2026-11-30", -1),
    ],
)
def test_a_day_lies_in_its_calendar_period(unit: Unit, start: str, day: str, number: int) -> None:
    found = periods.period_number(Unit(unit), date.fromisoformat(start), date.fromisoformat(day))

    assert found == number


def test_a_period_is_called_what_a_person_would_call_it() -> None:
    names = [periods.period_name(unit) for unit in Unit]

    assert names == ["day", "day", "week", "month", "campaign"]


@pytest.mark.parametrize(
    ("unit", "start", "until", "count"),
    [
        ("day", "2028-01-01", "2029-01-01", 366),
        ("event", "2027-01-01", "2028-01-01", 365),
        ("week", "2026-12-01", "2026-12-07", 1),
        ("week", "2026-12-06", "2026-12-08", 2),  # a Sunday and a Monday
        ("month", "2026-12-31", "2027-01-02", 2),  # two days, two months
        ("month", "2026-12-15", "2027-12-15", 13),  # both ends cut
        ("user", "2000-01-01", "2100-01-01", 1),
    ],
)
def test_a_campaign_has_every_period_it_has_a_day_in(
    unit: Unit, start: str, until: str, count: int
) -> None:
    assert calendar_of(Unit(unit), start, until).periods == count


@pytest.mark.parametrize(
    ("unit", "period", "opens", "closes", "calendar"),
    [
        ("day", 17, "2027-01-01", "2027-01-02", ("2027-01-01", "2027-01-02")),
        ("week", 0, "2026-12-15", "2026-12-21", ("2026-12-14", "2026-12-21")),  # a Tuesday: cut
        ("week", 12, "2027-03-08", "2027-03-15", ("2027-03-08", "2027-03-15")),
        ("month", 0, "2026-12-15", "2027-01-01", ("2026-12-01", "2027-01-01")),
        ("month", 1, "2027-01-01", "2027-02-01", ("2027-01-01", "2027-02-01")),
        ("month", 3, "2027-03-01", "2027-03-15", ("2027-03-01", "2027-04-01")),
        ("user", 0, "2026-12-15", "2027-03-15", ("2026-12-15", "2027-03-15")),
    ],
)
def test_a_period_is_its_calendar_range_cut_by_the_campaign_at_midnight_utc(
    unit: str, period: int, opens: str, closes: str, calendar: tuple[str, str]
) -> None:
    collection = calendar_of(Unit(unit), "2026-12-15", "2027-03-15")
    found = periods.calendar_range(collection.unit, collection.start, collection.until, period)

    assert schedule.period_start(collection, period).isoformat() == f"{opens}T00:00:00+00:00"
    assert schedule.period_end(collection, period).isoformat() == f"{closes}T00:00:00+00:00"
    assert tuple(day.isoformat() for day in found) == calendar


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
def test_periods_partition_the_campaign_without_a_gap(collection: Collection) -> None:
    all_periods = range(collection.periods)
    opens = [schedule.period_start(collection, period) for period in all_periods]
    closes = [schedule.period_end(collection, period) for period in all_periods]

    assert opens[1:] == closes[:-1]
    assert all(one < two for one, two in pairwise([*opens, closes[-1]]))
    assert (opens[0].date(), closes[-1].date()) == (collection.start, collection.until)


@given(campaigns())
def test_a_period_holds_its_first_instant_and_not_its_last(collection: Collection) -> None:
    tick = timedelta(microseconds=1)
    for period in {0, collection.periods // 2, collection.periods - 1}:
        opens = schedule.period_start(collection, period)
        closes = schedule.period_end(collection, period)
        following = period + 1 if period + 1 < collection.periods else None

        assert schedule.period_at(collection, opens) == period
        assert schedule.period_at(collection, closes - tick) == period
        assert schedule.period_at(collection, closes) == following


@pytest.mark.parametrize("now", [datetime(2027, 1, 1), datetime(1999, 1, 1, 12)])  # noqa: DTZ001 - naive on purpose
def test_an_instant_without_a_time_zone_is_refused(now: datetime) -> None:
    """Within the campaign and outside: the machine's own zone must not decide."""
    with pytest.raises(ValueError, match="needs its time zone"):
        schedule.period_at(MONTHLY, now)


def test_an_instant_is_counted_in_utc_and_outside_the_campaign_in_no_period() -> None:
    east, west = (timezone(timedelta(hours=hours)) for hours in (1, -1))

    assert schedule.period_at(MONTHLY, datetime(2027, 1, 1, 0, 30, tzinfo=east)) == 0
    assert schedule.period_at(MONTHLY, datetime(2026, 12, 31, 23, 30, tzinfo=west)) == 1
    assert schedule.period_at(MONTHLY, datetime(2026, 11, 30, 23, 59, tzinfo=UTC)) is None
    assert schedule.period_at(MONTHLY, datetime(2027, 12, 1, tzinfo=UTC)) is None
