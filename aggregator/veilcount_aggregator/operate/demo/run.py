"""The replay: devices record and report day by day, then a central release is made."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from functools import cached_property

import numpy as np
from numpy.random import Generator

from veilcount_analysis.mechanisms.sampling import Ints
from veilcount_analysis.series.series import Series
from veilcount_shared.schedule import period_end, period_start
from veilcount_shared.verdict import Verdict

from ...queries import Snapshot
from ...releases.curator import ReleaseResult
from .campaign import SCREEN, SCREENS, Campaign, Question
from .deployment import DemoDeployment
from .party_logs import PartyLogs
from .population import DemoUsers, Flags, TrueAnswers, true_answers
from .real_devices import AppEvent, DeliveryRecorder, RealDevice, RealDevices, RelayedDevices
from .simulated_devices import SimulatedReports, draw_secrets

ShowDay = Callable[[int, int, datetime], None]  # a day, of how many, and its instant

EVENING = time(20, tzinfo=UTC)
DAYS_A_WEEK = 7
RELAYED = 200  # devices of a beta, at most as many as real clients
SHARE_POSITION = 0.3
ACTOR = "demo"


@dataclass(frozen=True)
class DemoRun:
    """A replay. The users in `real` have a client each; the others are simulated."""

    campaign: Campaign
    deployment: DemoDeployment
    people: DemoUsers
    real: frozenset[int]
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
        people = DemoUsers.draw(devices, campaign, generator)
        chosen = generator.choice(devices, clients, replace=False)
        shares_position = generator.random(min(clients, RELAYED)) < SHARE_POSITION
        real = frozenset(chosen.tolist())
        return cls(campaign, deployment, people, real, shares_position, generator)

    def play(self, show: ShowDay) -> DemoResult:
        """Replay all days; return the result."""
        folder, clock = self.deployment.folder, self.deployment.clock
        collections, verdicts = self.campaign.collections, Counter[Verdict]()

        def install(person: int) -> RealDevice:
            return RealDevice(self.deployment.url, collections, folder / f"device {person}", clock)

        relayed = RelayedDevices(
            self.deployment.relayed, self.shares_position.tolist(), folder, clock
        )
        with closing(RealDevices(install)) as devices, closing(relayed):
            for day in range(self.campaign.days):
                clock.move(self._instant(day))
                show(day, self.campaign.days, clock.instant())
                self._walk(day, devices)
                self._relay(day, relayed)
                if self._is_delivery_day(day):
                    verdicts += self._deliver_week(day)
            devices.deliver()
            recorders = devices.recorders
        return DemoResult(self, recorders, verdicts, self._release())

    # -- the days ------------------------------------------------------------------------------

    def _instant(self, day: int) -> datetime:
        """Return the evening of a day; of today, this very event."""
        return min(datetime.combine(self.campaign.day(day), EVENING), self.campaign.now)

    def _walk(self, day: int, devices: RealDevices) -> None:
        out = self._real[self.people.walks[self._real, day] > 0]
        events: dict[int, list[AppEvent]] = {person: [] for person in out.tolist()}
        for name in (
            Question.DARK_MAP,
            Question.FIRST_TAP,
            Question.TRAIL,
            Question.WAY_THERE,
            Question.WAY_THERE_CENTRAL,
        ):
            self._record(events, name, day)
        self._record(events, Question.WALK_MINUTES, day)
        self._record(
            {person: events[person] for person in out[self.people.walks[out, day] > 1].tolist()},
            Question.WALK_MINUTES,
            day,
            walk=1,
        )
        devices.use(day, events, self.people.consents[out].tolist())

    def _record(
        self, events: Mapping[int, list[AppEvent]], name: str, day: int, walk: int = 0
    ) -> None:
        people = np.array(list(events), np.int64)
        days, walks = np.full_like(people, day), np.full_like(people, walk)
        labels = getattr(self.campaign.collections[name].domain, "labels", None)
        values = self.people.true_values(name, people, days, walks).tolist()
        for person, place in zip(events, values, strict=True):
            screen = SCREENS[self.people.screens[person]]
            segments = {SCREEN: screen} if name == Question.FIRST_TAP else {}
            value = place if labels is None else labels[place]
            events[person].append(AppEvent(name, value, segments))

    def _relay(self, day: int, devices: RelayedDevices) -> None:
        """In the last week the beta answers; who sends first on an evening is drawn."""
        if day == self.campaign.beta_installs:
            devices.install()
        elif day > self.campaign.beta_installs:
            if day in self.campaign.beta_answers:
                devices.record()
            devices.deliver(self.generator.permutation(len(self.shares_position)).tolist())

    def _is_delivery_day(self, day: int) -> bool:
        """Whether simulated devices deliver: once a week, and on the last day."""
        return day % DAYS_A_WEEK == DAYS_A_WEEK - 1 or day == self.campaign.days - 1

    def _deliver_week(self, day: int) -> Counter[Verdict]:
        """Deliver the reports of the week that ends on a day; return their verdicts."""
        since = day - day % DAYS_A_WEEK
        take = self.deployment.aggregator.take
        days, outgoing = range(since, day + 1), self._outgoing.values()
        delivered = [reports.deliver(days, take) for reports in outgoing]
        return sum(delivered, Counter[Verdict]())

    # -- the population ------------------------------------------------------------------------

    @cached_property
    def _real(self) -> Ints:
        return np.array(sorted(self.real), np.int64)

    @cached_property
    def true_answers(self) -> Mapping[str, TrueAnswers]:
        """The true answers of everyone, by collection."""
        collections = self.campaign.collections.items()
        return {name: true_answers(self.people, each, self.campaign) for name, each in collections}

    @cached_property
    def _outgoing(self) -> Mapping[str, SimulatedReports]:
        secret_of = draw_secrets(len(self.people), self.generator)
        return {
            name: SimulatedReports.draw(
                each,
                self.true_answers[name].where(~np.isin(self.true_answers[name].people, self._real)),
                secret_of,
                self.generator,
            )
            for name, each in self.campaign.collections.items()
        }

    @property
    def relayed_answers(self) -> TrueAnswers:
        """The true answers of the beta."""
        people = np.arange(len(self.shares_position))
        none, day = np.zeros_like(people), np.full_like(people, self.campaign.beta_answers[0])
        return TrueAnswers(people, none, day, none, none, self.shares_position.astype(np.int64))

    def simulated(self, name: str) -> TrueAnswers:
        """Return the true answers behind the reports of simulated devices."""
        return self._outgoing[name].answers

    # -- the curator ---------------------------------------------------------------------------

    def _release(self) -> ReleaseResult:
        aggregator = self.deployment.aggregator
        series = aggregator.known().catalog.by_name[Question.WAY_THERE_CENTRAL][0]
        period = series.open_periods(aggregator.today())[0] - 1
        collection = series.collection
        request = {
            "query": "histogram",
            "epsilon": collection.unit_epsilon,
            "from": period_start(collection, period).date(),
            "to": period_end(collection, period).date() - timedelta(days=1),
        }
        return aggregator.curator.answer(series, request, self.deployment.clock.instant(), ACTOR)


@dataclass(frozen=True)
class DemoResult:
    """The result of a replay: what was counted, and the true values behind it."""

    run: DemoRun
    recorders: Mapping[int, DeliveryRecorder]
    simulated: Counter[Verdict]
    released: ReleaseResult

    @property
    def real(self) -> Counter[Verdict]:
        """The verdicts of the reports of real devices."""
        return sum((each.verdicts for each in self.recorders.values()), Counter[Verdict]())

    @property
    def logs(self) -> PartyLogs:
        """What each party to the relayed question could have written down."""
        return self.run.deployment.logs

    @property
    def names(self) -> list[str]:
        """The collections."""
        return [*self.run.campaign.collections, Question.SHARED_POSITION]

    @property
    def snapshot(self) -> Snapshot:
        """The definitions and the store, today."""
        aggregator = self.run.deployment.aggregator
        return Snapshot(aggregator.known().catalog, aggregator.store, aggregator.today())

    def series(self, name: str) -> Series:
        """Return a collection's series."""
        return self.snapshot.named(name)[0]

    def counted(self, name: str) -> int:
        """Return how many answers the store holds of a collection."""
        return self.snapshot.reports(self.series(name))

    def truth(self, name: str) -> TrueAnswers:
        """Return the true answers behind all reports of a collection that were counted."""
        if name == Question.SHARED_POSITION:
            return self.run.relayed_answers
        return self._real_truth(name).joined_with(self.run.simulated(name))

    def _real_truth(self, name: str) -> TrueAnswers:
        """Return the true answers behind the reports of real devices.

        A device answers a period with the values recorded first, so their number identifies them.
        """
        everyone, fingerprint = self.run.true_answers[name], self.series(name).fingerprint
        here = everyone.where(np.isin(everyone.people, list(self.recorders)))
        rows = zip(here.people.tolist(), here.periods.tolist(), strict=True)
        counted = [self.recorders[person].counted[fingerprint, period] for person, period in rows]
        return here.where(here.orders < np.array(counted, np.int64))
