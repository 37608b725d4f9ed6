"""What a very large fleet takes of a shuffler and of who takes its batches, on paper.

`python -m bench.shuffler_scale` prints the tables of `docs/scale.md`. The costs are those of `./dev
bench shuffler`; sizes and times are the product's own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil

from veilcount_shared.shuffling.part import MAX_PARTS, PART_REPORTS
from veilcount_shared.shuffling.times import SENDING_SHARE
from veilcount_shuffler.crowd_limit import COPIES

from .scale import COSTS, DAY, DEPLOYMENT, GIGA, MICRO, TERA, _few, _head, _line

HOUR = 3_600
BUSIEST = 2.0  # the busiest hour over the mean, as of other reports


@dataclass(frozen=True, slots=True)
class ShufflerCosts:
    """What one report takes on its way; CPU in microseconds."""

    sealed_bytes: int = 247
    stored_bytes: int = 251  # with its check
    wire_bytes: int = 475  # its envelope of 275, with a head of HTTP
    seal: float = 110.0  # the device
    hold: float = 30.0  # HTTP, group and disk
    shuffle: float = 4.3
    open: float = 47.0  # the aggregator: opened, read and counted


SHUFFLER_COSTS = ShufflerCosts()


@dataclass(frozen=True, slots=True)
class Crowds:
    """What is asked of whom through shufflers, and how often."""

    name: str
    period_days: int
    grace_days: int
    questions: int = 1
    devices: float = 1e9

    @property
    def reports(self) -> float:
        """Reports of a period, over all questions."""
        return self.devices * self.questions

    @property
    def peak(self) -> float:
        """Envelopes a second in the busiest hour; periods overlap where a third of a grace does."""
        window = min(self.grace_days / SENDING_SHARE, self.period_days) * DAY
        return BUSIEST * self.reports / window

    @property
    def batches(self) -> int:
        """How many batches a period's reports need: one carries so many parts at most."""
        return self.questions * ceil(self.devices / (MAX_PARTS * PART_REPORTS))

    @property
    def stored(self) -> float:
        """TB that are held just before a crowd leaves."""
        crowds = ceil(self.grace_days / self.period_days)
        return crowds * self.reports * SHUFFLER_COSTS.stored_bytes / TERA

    @property
    def disk(self) -> float:
        """TB of disk: what is held, and the copies that a shuffler wants free."""
        return (1 + COPIES) * self.stored

    def hours(self, microseconds: float) -> float:
        """Return the core-hours a period of a cost that each report has."""
        return self.reports * microseconds * MICRO / HOUR

    @property
    def shufflers(self) -> int:
        """How many hand a period over before the next is due: each moves one part at a time."""
        one_by_one = self.hours(SHUFFLER_COSTS.shuffle + SHUFFLER_COSTS.open)
        return ceil(one_by_one / DEPLOYMENT.full / (self.period_days * 24))


FLEETS = (
    Crowds("a question a day", 1, 3),
    Crowds("four questions a day", 1, 3, questions=4),
    Crowds("four a week", 7, 7, questions=4),
    Crowds("four a month", 30, 14, questions=4),
    Crowds("four a day, one person in a hundred", 1, 3, questions=4, devices=1e7),
)


def lines() -> Iterator[str]:
    """Yield the tables of the page, line by line."""
    costs = SHUFFLER_COSTS
    yield from _head(
        "a report through a shuffler", "bytes", "device", "TLS", "shuffler", "aggregator"
    )
    yield _line(
        "us of a core",
        f"{costs.wire_bytes:,} + {COSTS.handshake_bytes:,}, stored {costs.stored_bytes}",
        *(f"{costs.seal:g}", f"{COSTS.handshake:g}"),
        f"{costs.hold:g} + {costs.shuffle:g}",
        f"{costs.open:g}",
    )
    yield ""
    yield from _head(
        "in the busiest hour", "envelopes/s", "Gbit/s", "TLS", "shuffler", "held, TB", "disk, TB"
    )
    yield from map(_busiest, FLEETS)
    yield ""
    yield from _head("of a period", "batches", "shuffled, h", "opened, h", "shufflers")
    yield from map(_handed_over, FLEETS)


def _busiest(crowds: Crowds) -> str:
    bits = (SHUFFLER_COSTS.wire_bytes + COSTS.handshake_bytes) * 8
    cores = [crowds.peak * cost * MICRO for cost in (COSTS.handshake, SHUFFLER_COSTS.hold)]
    figures = (crowds.peak, crowds.peak * bits / GIGA, *cores, crowds.stored, crowds.disk)
    return _line(crowds.name, *map(_few, figures))


def _handed_over(crowds: Crowds) -> str:
    hours = [crowds.hours(cost) for cost in (SHUFFLER_COSTS.shuffle, SHUFFLER_COSTS.open)]
    return _line(crowds.name, str(crowds.batches), *map(_few, hours), str(crowds.shufflers))


if __name__ == "__main__":
    print("\n".join(lines()))
