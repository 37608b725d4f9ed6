"""What Prometheus would have read of a deployment on its way into the state of an alert."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from veilcount_aggregator.errors import StoreError
from veilcount_aggregator.records.api_keys import Role

from ...aggregator.web.api.deployment_fixtures import FILE, Deployment, deployment
from ...redis_server import RedisServer
from .promtool import Sample, Scrape, read

MINUTE, HOUR, DAY = 60, 3600, 86_400
UP = "up"  # Prometheus' own, for each place that it reads


@dataclass
class Timeline:
    """Scrapes of one deployment, and the instants at which an alert is to be silent and to fire."""

    scrapes: list[Scrape] = field(default_factory=list)
    quiet: float = 0.0
    fired: float = 0.0

    def add(self, at: float, samples: list[Sample]) -> None:
        """Add a scrape; the first is the quiet one unless another is set."""
        self.scrapes.append(Scrape(at, samples))
        self.fired = at


State = Callable[[Path], Timeline]
STATES: dict[str, State] = {}
#: alerts whose states take seconds; what they watch has cheaper tests too
SLOW: set[str] = set()


def state(alert: str, *, slow: bool = False) -> Callable[[State], State]:

    def register(function: State) -> State:
        STATES[alert] = function
        if slow:
            SLOW.add(alert)
        return function

    return register


# -- the application without a socket --------------------------------------------------------------


@dataclass
class Scraped:
    """An application, and a key that opens its metrics."""

    deployment: Deployment
    key: str
    timeline: Timeline = field(default_factory=Timeline)

    def scrape(self, at: float) -> None:
        """Read its metrics, as if at an instant, right after a tick."""
        with suppress(StoreError):
            self.deployment.aggregator.flush()
        reply = self.deployment.ask("GET", "/metrics", key=self.key)
        assert reply.status == 200
        up = Sample(UP, {"job": "veilcount"}, 1)
        self.timeline.add(at, [up, *read(reply.body.decode())])


@contextmanager
def scraped(folder: Path, **settings: Any) -> Iterator[Scraped]:
    with deployment(folder, FILE, **settings) as deployed:
        yield Scraped(deployed, deployed.key(Role.ANALYST))


@contextmanager
def on_redis(folder: Path) -> Iterator[tuple[Scraped, RedisServer]]:
    """Yield the same on a Redis, and that."""
    redis = RedisServer(folder)
    try:
        with scraped(folder, url=redis.url) as found:
            yield found, redis
    finally:
        redis.kill()


Act = Callable[[Deployment], object]


def acted(alert: str, *, twice: bool = False, **settings: Any) -> Callable[[Act], Act]:
    """Register an act that leads to the state of an alert: figures are read before and after.

    Where the alert is on a rate the act comes twice: a series that has just appeared has none.
    """

    def register(act: Act) -> Act:
        def timeline(folder: Path) -> Timeline:
            with scraped(folder, **settings) as found:
                if twice:
                    found.deployment.verdicts(found.deployment.report("theme"))
                    act(found.deployment)
                found.scrape(0)
                found.deployment.clocks.passed += MINUTE
                act(found.deployment)
                found.scrape(10 * MINUTE)
            return found.timeline

        STATES[alert] = timeline
        return act

    return register
