"""The replay: devices record and report day by day, then a central release is made."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from functools import cached_property

import numpy as np
from numpy.random import Generator

from veilcount_shared import Collection
from veilcount_shared.schedule import period_end, period_start
from veilcount_shared.verdict import Verdict

from ..central.curator import ReleaseResult
from ..queries import Snapshot
from ..sampling.mixture import Ints
from ..series.series import Series
from .campaign import (
    DARK_MAP,
    FIRST_TAP,
    SCREEN,
    SCREENS,
    TRAIL,
    WALK_MINUTES,
    WAY_THERE,
    WAY_THERE_TOLD,
    Campaign,
)
from .deployment import DemoDeployment
from .period_reports import TrueAnswers, true_answers
from .population import DemoUsers
from .progress import ShowDay
from .real_devices import AppEvent, DeliveryRecorder, RealDevice, RealDevices
from .simulated_devices import SimulatedReports, draw_secrets

EVENING = time(20, tzinfo=UTC)
DAYS_A_WEEK = 7
WHO = "demo"


@dataclass(frozen=True)
class DemoRun:
    """A replay. The users in `real` have a client each; the others are simulated."""

    campaign: Campaign
    stage: DemoDeployment
    people: DemoUsers
    real: frozenset[int]
    generator: Generator

    @classmethod
    def prepare(
        cls, campaign: Campaign, stage: DemoDeployment, *, devices: int, clients: int, seed: int
    ) -> DemoRun:
        """Make up the people, and choose those who have a real client."""
        generator = np.random.default_rng(seed)
        people = DemoUsers.of(devices, campaign, generator)
        chosen = generator.choice(devices, clients, replace=False)
        return cls(campaign, stage, people, frozenset(chosen.tolist()), generator)

    def play(self, show: ShowDay) -> DemoResult:
        """Replay all days; return the result."""
        folder, clock = self.stage.folder, self.stage.clock
        collections, verdicts = self.campaign.collections, Counter[Verdict]()

        def install(person: int) -> RealDevice:
            return RealDevice(self.stage.url, collections, folder / f"device {person}", clock)

        with closing(RealDevices(install)) as devices:
            for day in range(self.campaign.days):
                clock.move(self._instant(day))
                show(day, self.campaign.days, clock.instant())
                self._walk(day, devices)
                if self._is_mail_day(day):
                    verdicts += self._post(day)
            devices.deliver()
            seen = devices.witnesses
        return DemoResult(self, seen, verdicts, self._release())

    # -- the days ------------------------------------------------------------------------------

    def _instant(self, day: int) -> datetime:
        """Return the evening of a day; of today, this very moment."""
        return min(datetime.combine(self.campaign.day(day), EVENING), self.campaign.now)

    def _walk(self, day: int, devices: RealDevices) -> None:
        """Have the real devices that are used today record what their people say."""
        out = self._real[self.people.walks[self._real, day] > 0]
        moments: dict[int, list[AppEvent]] = {person: [] for person in out.tolist()}
        for name in (DARK_MAP, FIRST_TAP, TRAIL, WAY_THERE, WAY_THERE_TOLD):
            self._record(moments, name, day)
        self._record(moments, WALK_MINUTES, day)
        self._record(
            {person: moments[person] for person in out[self.people.walks[out, day] > 1].tolist()},
            WALK_MINUTES,
            day,
            walk=1,
        )
        devices.use(day, moments, self.people.consents[out].tolist())

    def _record(
        self, moments: Mapping[int, list[AppEvent]], name: str, day: int, walk: int = 0
    ) -> None:
        """Add what some people say to one question, as the app writes it."""
        people = np.array(list(moments), np.int64)
        days, walks = np.full_like(people, day), np.full_like(people, walk)
        labels = getattr(self.campaign.collections[name].domain, "labels", None)
        said = self.people.says(name, people, days, walks).tolist()
        for person, place in zip(moments, said, strict=True):
            screen = SCREENS[self.people.screens[person]]
            segments = {SCREEN: screen} if name == FIRST_TAP else {}
            value = place if labels is None else labels[place]
            moments[person].append(AppEvent(name, value, segments))

    def _is_mail_day(self, day: int) -> bool:
        """Simulated devices deliver once a week; and on the last day, so that nothing is left."""
        return day % DAYS_A_WEEK == DAYS_A_WEEK - 1 or day == self.campaign.days - 1

    def _post(self, day: int) -> Counter[Verdict]:
        """Deliver the mail of the week that ends with a day; return its verdicts."""
        since = day - day % DAYS_A_WEEK
        take = self.stage.aggregator.take
        delivered = [mail.deliver(range(since, day + 1), take) for mail in self._mail.values()]
        return sum(delivered, Counter[Verdict]())

    # -- the crowd -----------------------------------------------------------------------------

    @cached_property
    def _real(self) -> Ints:
        return np.array(sorted(self.real), np.int64)

    @cached_property
    def would(self) -> Mapping[str, TrueAnswers]:
        """What everyone would answer, by collection."""
        collections = self.campaign.collections.items()
        return {name: true_answers(self.people, each, self.campaign) for name, each in collections}

    @cached_property
    def _mail(self) -> Mapping[str, SimulatedReports]:
        """What the simulated devices will send, by collection."""
        secret_of = draw_secrets(len(self.people), self.generator)
        return {
            name: SimulatedReports.of(
                each,
                self.would[name].where(~np.isin(self.would[name].people, self._real)),
                secret_of,
                self.generator,
            )
            for name, each in self.campaign.collections.items()
        }

    def simulated(self, name: str) -> TrueAnswers:
        """Return the true answers behind what the simulated devices sent."""
        return self._mail[name].answers

    # -- the curator ---------------------------------------------------------------------------

    def _release(self) -> ReleaseResult:
        """Ask the curator for the last month that takes no more answers, and pay for it."""
        aggregator = self.stage.aggregator
        series = aggregator.known().catalog.by_name[WAY_THERE_TOLD][0]
        period = series.taken(aggregator.today())[0] - 1
        collection = series.collection
        request = {
            "query": "histogram",
            "epsilon": collection.unit_epsilon,
            "from": period_start(collection, period).date(),
            "to": period_end(collection, period).date() - timedelta(days=1),
        }
        return aggregator.curator.answer(series, request, self.stage.clock.instant(), WHO)


@dataclass(frozen=True)
class DemoResult:
    """The result of a replay: what was counted, and the true values behind it."""

    story: DemoRun
    seen: Mapping[int, DeliveryRecorder]
    simulated: Counter[Verdict]
    released: ReleaseResult

    @property
    def real(self) -> Counter[Verdict]:
        """What became of the reports of real devices."""
        return sum((each.verdicts for each in self.seen.values()), Counter[Verdict]())

    @property
    def snapshot(self) -> Snapshot:
        """What the aggregator answers from."""
        aggregator = self.story.stage.aggregator
        return Snapshot(aggregator.known().catalog, aggregator.store, aggregator.today())

    def series(self, name: str) -> Series:
        """Return a collection's series."""
        return self.snapshot.named(name)[0]

    def counted(self, name: str) -> int:
        """Return how many answers the store holds of a collection."""
        return self.snapshot.reports(self.series(name))

    def truth(self, name: str) -> TrueAnswers:
        """Return the true answers behind all reports of a collection that were counted."""
        return self._seen(name).beside(self.story.simulated(name))

    def _seen(self, name: str) -> TrueAnswers:
        """Return the true answers behind the reports of real devices.

        A device answers a period with what was recorded first in it, so the number of its reports
        says which of its person's words they stand for.
        """
        would, fingerprint = self.story.would[name], self._fingerprint(name)
        here = would.where(np.isin(would.people, list(self.seen)))
        rows = zip(here.people.tolist(), here.periods.tolist(), strict=True)
        sent: Ints = np.fromiter(
            (self.seen[person].counted[fingerprint, period] for person, period in rows),
            np.int64,
            len(here),
        )
        return here.where(here.orders < sent)

    def _fingerprint(self, name: str) -> str:
        collection: Collection = self.story.campaign.collections[name]
        return collection.fingerprint
