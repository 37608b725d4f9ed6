"""The simulated population, and its simulated devices."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from functools import cache

import numpy as np
import pytest

from tests.report_check import check_report
from veilcount_aggregator.demo.campaign import Campaign, Question
from veilcount_aggregator.demo.population import DemoUsers, TrueAnswers, true_answers
from veilcount_aggregator.demo.simulated_devices import SimulatedReports, draw_secrets
from veilcount_aggregator.ingest.decode import DecodedBody
from veilcount_shared import Collection, SystemRandomSource, schedule
from veilcount_shared.report import Report
from veilcount_shared.verdict import Verdict

CAMPAIGN = Campaign(datetime(2026, 11, 21, 12, tzinfo=UTC))
PEOPLE = DemoUsers.draw(2_000, CAMPAIGN, np.random.default_rng(5))
SECRETS = draw_secrets(len(PEOPLE), np.random.default_rng(6))
ALL = sorted(CAMPAIGN.collections)


@cache
def truth(name: str) -> TrueAnswers:
    return true_answers(PEOPLE, CAMPAIGN.collections[name], CAMPAIGN)


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
        for answer in range(collection.per_period)
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

    assert len(valid) == len(sent) > 500
    assert valid <= set.union(*(promised(secret, collection) for secret in SECRETS))


@pytest.mark.parametrize("name", [Question.FIRST_TAP, Question.TRAIL, Question.WALK_MINUTES])
def test_everyone_answers_in_their_drawn_periods(name: str) -> None:
    collection, answers = CAMPAIGN.collections[name], truth(name)
    drawn = [schedule.draw_answering_periods(secret, collection) for secret in SECRETS]
    expected = sum(
        period in drawn[person]
        for person, period in zip(answers.people, answers.periods, strict=True)
    )

    assert len(simulated(name).answers) == expected


def test_each_person_answers_one_of_the_paired_collections() -> None:
    local, central = (
        set(simulated(name).answers.people.tolist())
        for name in (Question.WAY_THERE, Question.WAY_THERE_CENTRAL)
    )

    assert not local & central
    assert abs(len(local) - len(central)) < 250  # of some 1,600, at random: six deviations


def test_all_weeks_together_are_the_campaign() -> None:
    sent = simulated(Question.FIRST_TAP)
    weeks = [range(day, min(day + 7, CAMPAIGN.days)) for day in range(0, CAMPAIGN.days, 7)]
    bodies = [body for week in weeks for body in delivered(sent, week)]

    assert sum(body.reports for body in bodies) == len(sent.answers)
    assert max(body.reports for body in bodies) <= 1_000
