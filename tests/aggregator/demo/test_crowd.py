"""The made-up crowd, and the devices of it that are simulated."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime

import numpy as np
import pytest

from veilcount_aggregator.demo.campaign import (
    DARK_MAP,
    FIRST_TAP,
    TRAIL,
    WALK_MINUTES,
    WAY_THERE,
    WAY_THERE_TOLD,
    Campaign,
)
from veilcount_aggregator.demo.period_reports import TrueAnswers, true_answers
from veilcount_aggregator.demo.population import DemoUsers
from veilcount_aggregator.demo.simulated_devices import SimulatedReports, draw_secrets
from veilcount_aggregator.ingest.decode import DecodedBody
from veilcount_shared import Collection, SystemRandomSource, schedule
from veilcount_shared.periods import Unit
from veilcount_shared.report import Report, check_report
from veilcount_shared.verdict import Verdict

CAMPAIGN = Campaign(datetime(2026, 11, 21, 12, tzinfo=UTC))
PEOPLE = DemoUsers.of(2_000, CAMPAIGN, np.random.default_rng(5))
SECRETS = draw_secrets(len(PEOPLE), np.random.default_rng(6))
ALL = sorted(CAMPAIGN.collections)


def would(name: str) -> TrueAnswers:
    """Return what everybody would answer."""
    return true_answers(PEOPLE, CAMPAIGN.collections[name], CAMPAIGN)


def mail(name: str) -> SimulatedReports:
    """Return what a crowd of simulated devices sends."""
    collection = CAMPAIGN.collections[name]
    return SimulatedReports.of(collection, would(name), SECRETS, np.random.default_rng(7))


def delivered(mail: SimulatedReports, days: range) -> list[DecodedBody]:
    """Return the bodies of some days."""
    bodies: list[DecodedBody] = []

    def take(body: DecodedBody) -> list[Verdict]:
        bodies.append(body)
        return [Verdict.COUNTED] * body.reports

    assert mail.deliver(days, take) == Counter(
        {Verdict.COUNTED: sum(body.reports for body in bodies)}
    )
    return bodies


def reports(mail: SimulatedReports) -> list[Report]:
    """Return all of a crowd's reports, one by one."""
    return [
        Report(columns.fingerprint, period, segment, pseudonym.tobytes(), slot, message.tobytes())
        for body in delivered(mail, range(CAMPAIGN.days))
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


def test_nobody_walks_before_they_have_the_app() -> None:
    first = np.where(PEOPLE.walks.any(axis=1), (PEOPLE.walks > 0).argmax(axis=1), CAMPAIGN.days)

    assert (first >= PEOPLE.joined).all()


def test_who_declines_says_nothing() -> None:
    assert 0.1 < 1 - PEOPLE.consents.mean() < 0.2
    assert all(PEOPLE.consents[would(name).people].all() for name in ALL)


def test_a_seed_makes_the_same_people() -> None:
    again = DemoUsers.of(2_000, CAMPAIGN, np.random.default_rng(5))
    other = DemoUsers.of(2_000, CAMPAIGN, np.random.default_rng(8))

    assert (again.walks == PEOPLE.walks).all()
    assert (other.walks != PEOPLE.walks).any()


def test_each_period_has_one_answer_of_its_first_day() -> None:
    said = would(DARK_MAP)
    months = CAMPAIGN.periods(Unit.MONTH)
    firsts = {
        (person, month): day
        for person, day in reversed([*zip(*map(list, np.nonzero(PEOPLE.walks)), strict=True)])
        if PEOPLE.consents[person]
        for month in [months[day]]
    }

    assert len(said) == len(firsts)
    assert all(
        firsts[person, month] == day
        for person, month, day in zip(said.people, said.periods, said.days, strict=True)
    )


def test_each_walk_is_an_answer_of_its_own() -> None:
    said = would(WALK_MINUTES)

    assert len(said) == PEOPLE.walks[PEOPLE.consents].sum()
    assert set(said.orders) == {0, 1}


def test_the_truth_moves_and_differs() -> None:
    """Of 5,000 answers and more on each side: ten standard deviations lie between."""
    dark, taps, ways = would(DARK_MAP), would(FIRST_TAP), would(WAY_THERE)
    nearby, train = 2, 1

    assert dark.values[dark.periods == 4].mean() > dark.values[dark.periods == 0].mean() + 0.08
    assert (taps.values[taps.segments == 1] == nearby).mean() > (
        taps.values[taps.segments == 0] == nearby
    ).mean() + 0.15
    assert (ways.values[ways.periods == 4] == train).mean() > (
        ways.values[ways.periods == 0] == train
    ).mean() + 0.04


@pytest.mark.parametrize("name", ALL)
def test_simulated_reports_are_those_that_a_device_with_their_secret_sends(name: str) -> None:
    collection = CAMPAIGN.collections[name]
    sent = reports(mail(name))
    mine = {
        (report.period, report.pseudonym, report.slot)
        for report in sent
        if check_report(report, collection) is not None
    }

    assert len(mine) == len(sent) > 500
    assert mine <= set.union(*(promised(secret, collection) for secret in SECRETS))


@pytest.mark.parametrize("name", [FIRST_TAP, TRAIL, WALK_MINUTES])
def test_everyone_who_is_asked_and_has_something_to_say_answers(name: str) -> None:
    collection, said = CAMPAIGN.collections[name], would(name)
    asked = [schedule.draw_answering_periods(secret, collection) for secret in SECRETS]
    expected = sum(
        period in asked[person] for person, period in zip(said.people, said.periods, strict=True)
    )

    assert len(mail(name).answers) == expected


def test_each_person_is_asked_by_one_twin() -> None:
    local, told = (set(mail(name).answers.people.tolist()) for name in (WAY_THERE, WAY_THERE_TOLD))

    assert not local & told
    assert abs(len(local) - len(told)) < 250  # of some 1,600, by a coin: six deviations


def test_the_mail_of_all_weeks_is_the_mail_of_the_campaign() -> None:
    sent = mail(FIRST_TAP)
    weeks = [range(day, min(day + 7, CAMPAIGN.days)) for day in range(0, CAMPAIGN.days, 7)]
    bodies = [body for week in weeks for body in delivered(sent, week)]

    assert sum(body.reports for body in bodies) == len(sent.answers)
    assert max(body.reports for body in bodies) <= 1_000
