"""The campaign of the demo, its simulated population and their simulated devices."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, date, datetime
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from veilcount_aggregator.intake.decode import DecodedBody
from veilcount_aggregator.operate.demo.campaign import Campaign, Question
from veilcount_aggregator.operate.demo.deployment import DemoClock
from veilcount_aggregator.operate.demo.population import DemoUsers, TrueAnswers, draw_answers
from veilcount_aggregator.operate.demo.simulated_devices import SimulatedReports, draw_secrets
from veilcount_shared import Collection, SystemRandomSource, load_collections, schedule
from veilcount_shared.report import Report
from veilcount_shared.verdict import Verdict

from ....report_check import check_report

CAMPAIGN = Campaign(datetime(2026, 11, 21, 12, tzinfo=UTC))
PEOPLE = DemoUsers.draw(1_000, CAMPAIGN, np.random.default_rng(5))
SECRETS = draw_secrets(len(PEOPLE), np.random.default_rng(6))
ALL = sorted(CAMPAIGN.collections)


@cache
def truth(name: str) -> TrueAnswers:
    return draw_answers(PEOPLE, CAMPAIGN.collections[name], CAMPAIGN, np.random.default_rng(4))


@cache
def simulated(name: str) -> SimulatedReports:
    collection = CAMPAIGN.collections[name]
    return SimulatedReports.draw(collection, truth(name), SECRETS, np.random.default_rng(7))


def delivered(sent: SimulatedReports, days: range) -> list[DecodedBody]:
    bodies: list[DecodedBody] = []

    def take(body: DecodedBody) -> list[Verdict]:
        bodies.append(body)
        return [Verdict.COUNTED] * body.reports

    assert sent.deliver(days, take) == Counter(
        {Verdict.COUNTED: sum(body.reports for body in bodies)}
    )
    return bodies


def reports(sent: SimulatedReports) -> list[Report]:
    return [
        Report(columns.fingerprint, period, segment, pseudonym.tobytes(), slot, message.tobytes())
        for body in delivered(sent, range(CAMPAIGN.days))
        for columns in body.series_columns
        for period, segment, pseudonym, slot, message in zip(
            columns.periods.tolist(),
            columns.segments.tolist(),
            columns.pseudonyms,
            columns.slots.tolist(),
            columns.messages,
            strict=True,
        )
    ]


def promised(secret: bytes, collection: Collection) -> set[tuple[int, bytes, int]]:
    """Return all that a real device with this secret might send: period, pseudonym, slot."""
    if not schedule.is_selected(secret, collection):
        return set()
    return {
        (
            period,
            schedule.derive_pseudonym(secret, collection, period, SystemRandomSource()),
            schedule.draw_slot(secret, collection, period, answer),
        )
        for period in schedule.draw_answering_periods(secret, collection)
        for answer in range(collection.per_day)
    }


def test_users_who_decline_have_no_answers() -> None:
    assert 0.1 < 1 - PEOPLE.consents.mean() < 0.2
    assert all(PEOPLE.consents[truth(name).people].all() for name in ALL)


@pytest.mark.parametrize("name", ALL)
def test_simulated_reports_are_those_of_a_device_with_the_same_secret(name: str) -> None:
    collection = CAMPAIGN.collections[name]
    sent = reports(simulated(name))
    valid = {
        (report.period, report.pseudonym, report.slot)
        for report in sent
        if check_report(report, collection) is not None
    }

    assert len(valid) == len(sent) > 250
    assert valid <= set.union(*(promised(secret, collection) for secret in SECRETS))


def test_each_person_answers_one_of_the_paired_collections() -> None:
    local, central = (
        set(simulated(name).answers.people.tolist())
        for name in (Question.WAY_THERE, Question.WAY_THERE_CENTRAL)
    )

    assert not local & central
    assert abs(len(local) - len(central)) < 170  # of some 800, at random: six deviations


# -- the campaign: its dates move with today -------------------------------------------------------


DAYS = [date(2026, 11, 21), date(2027, 1, 1), date(2028, 2, 29), date(2026, 7, 31)]


def campaign(day: date) -> Campaign:
    return Campaign(datetime(day.year, day.month, day.day, 12, tzinfo=UTC))


@pytest.mark.parametrize("day", DAYS, ids=str)
def test_it_began_four_months_ago_and_ends_in_the_future(day: date) -> None:
    made = campaign(day)
    months = (day.year - made.start.year) * 12 + day.month - made.start.month

    assert (made.start.day, months) == (1, 4)
    assert made.until > day
    assert made.day(made.days - 1) == day
    assert {collection.start for collection in made.collections.values()} == {made.start}
    assert {collection.until for collection in made.collections.values()} == {made.until}


def test_a_device_reads_the_file_as_the_demo_does(tmp_path: Path) -> None:
    made = campaign(DAYS[0])
    file = made.write(tmp_path)

    assert load_collections(file) == made.collections
    assert made.collections[Question.TRAIL].domain.size == 2_000


def test_the_clock_never_goes_back_and_follows_the_machine_once_released() -> None:
    machine = datetime(2027, 1, 1, tzinfo=UTC)
    clock = DemoClock(datetime(2026, 7, 1, tzinfo=UTC), machine.timestamp)
    evening = datetime(2026, 7, 1, 20, tzinfo=UTC)
    clock.move(evening)
    clock.move(datetime(2026, 7, 1, 19, tzinfo=UTC))

    assert clock.instant() == evening
    assert clock.now() == evening.timestamp()

    clock.release()

    assert clock.instant() == machine
