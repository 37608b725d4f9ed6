"""The replay: devices record and report day by day, then a central release is made."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from functools import cached_property
from typing import Any

import numpy as np
from numpy.random import Generator

from veilcount_analysis.mechanisms.sampling import Ints
from veilcount_analysis.series.series import Series
from veilcount_reader import Reader
from veilcount_shared.schedule import period_end, period_start
from veilcount_shared.verdict import Verdict

from ...queries import Snapshot
from .campaign import DAYS_A_WEEK, SCREEN, SCREENS, Campaign, Question
from .deployment import DemoDeployment
from .population import DemoUsers, Flags, TrueAnswers, draw_answers
from .real_devices import DeliveryRecorder, Fleet, ShuffledRoute
from .simulated_devices import SimulatedReports, draw_secrets

ShowDay = Callable[[int, int, datetime], None]  # a day, of how many, and its instant

EVENING = time(20, tzinfo=UTC)
DAYS_BETWEEN = 21  # uploads: there is no network in the hills, and reports may be 30 days late
RELAYED = 200  # devices of a beta, at most as many as real clients
SHARE_POSITION = 0.3
PAYS = (0.6, 0.3, 0.1)  # for a guide: no, once a year, more often
SENDING_DAYS = 4  # the first third of a grace of seven, and the evening after


@dataclass(frozen=True)
class DemoRun:
    """A replay. The users in `real` have a client each; the others are simulated."""

    campaign: Campaign
    deployment: DemoDeployment
    users: DemoUsers
    real: Ints
    shares_position: Flags  # of each device of the beta
    generator: Generator

    @classmethod
    def prepare(
        cls,
        campaign: Campaign,
        deployment: DemoDeployment,
        *,
        devices: int,
        clients: int,
        seed: int,
    ) -> DemoRun:
        """Draw the users, and choose those who have a real client."""
        generator = np.random.default_rng(seed)
        users = DemoUsers.draw(devices, campaign, generator)
        real = np.sort(generator.choice(devices, clients, replace=False))
        shares_position = generator.random(min(clients, RELAYED)) < SHARE_POSITION
        return cls(campaign, deployment, users, real, shares_position, generator)

    def play(self, show: ShowDay) -> DemoResult:
        """Replay all days; return the result."""
        folder, clock = self.deployment.folder, self.deployment.clock
        verdicts, devices, beta = Counter[Verdict](), Fleet(folder, clock), Fleet(folder, clock)
        with closing(devices), closing(beta):
            consents = dict(enumerate(self.users.consents.tolist()))
            people = {person: consents[person] for person in self.real.tolist()}
            devices.install(people, self.deployment.url, self.campaign.collections, self._route)
            for day in range(self.campaign.days):
                evening = datetime.combine(self.campaign.day(day), EVENING)
                clock.move(min(evening, self.campaign.now))
                show(day, self.campaign.days, clock.instant())
                self._record(day, devices)
                self._shuffle(day, devices)
                self._relay(day, beta)
                verdicts += self._deliver(day)
            devices.deliver(people)
        return DemoResult(self, devices.recorders, verdicts, self._release())

    # -- the days ------------------------------------------------------------------------------

    def _record(self, day: int, devices: Fleet) -> None:
        """Have real devices record the answers of a day; those with a network deliver."""
        for name, answers in self.true_answers.items():
            labels = getattr(self.campaign.collections[name].domain, "labels", None)
            today = answers.where((answers.days == day) & np.isin(answers.people, self.real))
            columns = (today.people.tolist(), today.segments.tolist(), today.values.tolist())
            for person, segment, place in zip(*columns, strict=True):
                segments = {SCREEN: SCREENS[segment]} if name == Question.FIRST_TAP else {}
                value = place if labels is None else labels[place]
                devices.clients[person].record(name, value, **segments)
        devices.deliver(self.real[(self.real + day) % DAYS_BETWEEN == 0].tolist())

    @property
    def _route(self) -> ShuffledRoute:
        shuffler = self.deployment.shuffler
        return ShuffledRoute(shuffler.collection, shuffler.relay_keys, shuffler.take)

    def _shuffle(self, day: int, devices: Fleet) -> None:
        """Have real devices answer in the week that is asked about; later their reports leave."""
        week = self.campaign.guide_days
        if day in week:
            people = self.real[self.real % len(week) == day % len(week)].tolist()
            for person in people:
                devices.clients[person].record(Question.GUIDE, self.guide_values[person])
            devices.store(people)
        if day in range(week.stop, week.stop + SENDING_DAYS):
            devices.deliver(self.generator.permutation(self.real).tolist())
        if day >= week.stop:
            self.deployment.shuffler.hand_over()

    def _relay(self, day: int, beta: Fleet) -> None:
        """In the last week the beta answers; who sends first on an evening is drawn."""
        route, people = self.deployment.relayed, range(len(self.shares_position))
        if day == self.campaign.beta_installs:
            beta.install_beta(dict.fromkeys(people, True), route)
        if day in self.campaign.beta_answers:
            for client, value in zip(beta.clients.values(), self.shares_position, strict=True):
                client.record(route.collection.name, bool(value))
        if day > self.campaign.beta_installs:
            for person in self.generator.permutation(people).tolist():
                beta.clients[person].flush()

    def _deliver(self, day: int) -> Counter[Verdict]:
        """Once a week, and on the last day, deliver the reports of the week that ends on a day."""
        if day % DAYS_A_WEEK != DAYS_A_WEEK - 1 and day != self.campaign.days - 1:
            return Counter()
        days = range(day - day % DAYS_A_WEEK, day + 1)
        delivered = [
            reports.deliver(days, self.deployment.aggregator.take)
            for reports in self.simulated.values()
        ]
        return sum(delivered, Counter[Verdict]())

    # -- the population ------------------------------------------------------------------------

    @cached_property
    def true_answers(self) -> Mapping[str, TrueAnswers]:
        """The true answers of everyone, by collection."""
        return {
            name: draw_answers(self.users, collection, self.campaign, self.generator)
            for name, collection in self.campaign.collections.items()
        }

    @property
    def _guide_labels(self) -> tuple[str, ...]:
        labels: tuple[str, ...] = getattr(self.deployment.shuffler.collection.domain, "labels", ())
        return labels

    @cached_property
    def guide_values(self) -> Mapping[int, str]:
        """What each person with a real client would pay."""
        labels = self._guide_labels
        drawn = self.generator.choice(len(labels), len(self.real), p=PAYS)
        people = zip(self.real.tolist(), drawn.tolist(), strict=True)
        return {person: labels[place] for person, place in people}

    @cached_property
    def simulated(self) -> Mapping[str, SimulatedReports]:
        """The reports of simulated devices, by collection."""
        secret_of = draw_secrets(len(self.users), self.generator)
        return {
            name: SimulatedReports.draw(
                self.campaign.collections[name],
                answers.where(~np.isin(answers.people, self.real)),
                secret_of,
                self.generator,
            )
            for name, answers in self.true_answers.items()
        }

    @cached_property
    def guide_answers(self) -> TrueAnswers:
        """The true answers behind the batch: of everyone with a real client who consents."""
        labels = self._guide_labels
        people = self.real[self.users.consents[self.real]]
        values = np.array([labels.index(self.guide_values[person]) for person in people.tolist()])
        zeros = np.zeros_like(people)
        return TrueAnswers(people, zeros, zeros, zeros, zeros, values.astype(np.int64))

    # -- the curator ---------------------------------------------------------------------------

    @property
    def released_period(self) -> int:
        """The last month of which no report may come any more."""
        collection = self.campaign.collections[Question.WAY_THERE_CENTRAL]
        return Series(collection).open_periods(self.campaign.today)[0] - 1

    def _release(self) -> Mapping[str, Any]:
        """Release the last month that is over."""
        collection = self.campaign.collections[Question.WAY_THERE_CENTRAL]
        period = self.released_period
        return self.deployment.reader.release(
            collection.name,
            "histogram",
            collection.unit_epsilon,
            from_=period_start(collection, period).date(),
            to=period_end(collection, period).date() - timedelta(days=1),
            confirm=True,
        ).document


@dataclass(frozen=True)
class DemoResult:
    """The result of a replay: what was counted, and the true values behind it."""

    run: DemoRun
    recorders: Mapping[int, DeliveryRecorder]
    simulated: Counter[Verdict]
    released: Mapping[str, Any]

    @property
    def real(self) -> Counter[Verdict]:
        """The verdicts of the reports of real devices."""
        return sum((recorder.verdicts for recorder in self.recorders.values()), Counter[Verdict]())

    @property
    def reader(self) -> Reader:
        """Reads the figures, as an analyst does."""
        return self.run.deployment.reader

    @property
    def snapshot(self) -> Snapshot:
        """The definitions and the store, today."""
        return self.run.deployment.aggregator.snapshot()

    @property
    def names(self) -> list[str]:
        """The collections that were answered."""
        beta = [Question.SHARED_POSITION] if len(self.run.shares_position) else []
        shuffled = [Question.GUIDE] if self.run.deployment.shuffler.logs.aggregator else []
        return [*self.run.campaign.collections, *beta, *shuffled]

    def truth(self, name: str) -> TrueAnswers:
        """Return the true answers behind all reports of a collection that were counted.

        A device answers a period with the values recorded first, so their number identifies them.
        """
        run = self.run
        if name == Question.SHARED_POSITION:
            people = np.arange(len(run.shares_position))
            zeros = np.zeros_like(people)
            return TrueAnswers(people, zeros, zeros, zeros, zeros, run.shares_position * 1)
        if name == Question.GUIDE:
            return run.guide_answers
        fingerprint, everyone = run.campaign.collections[name].fingerprint, run.true_answers[name]
        real = everyone.where(np.isin(everyone.people, run.real))
        rows = zip(real.people.tolist(), real.periods.tolist(), strict=True)
        counted = [self.recorders[person].counted[fingerprint, period] for person, period in rows]
        return real.where(real.orders < np.array(counted, np.int64)) + run.simulated[name].answers
