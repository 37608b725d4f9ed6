"""How many devices are at work when: pure functions of the share of a run that has passed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil, inf

LEVELS = 6  # of a ramp: each has twice the devices of the one before


@dataclass(frozen=True, slots=True)
class Phase:
    """A stretch of a run in which nothing changes."""

    name: str
    until: float  # the share of the run that has passed then
    level: float  # the share of the devices that are at work


@dataclass(frozen=True, slots=True)
class Shape:
    """A course of a run. In a paced one, bodies are spread over the whole time; else each device
    sends its next as soon as the last is answered.
    """

    phases: tuple[Phase, ...]
    paced: bool = False
    devices: int = 500  # a second of the run: each has four bodies
    users: int = 32  # of them at once

    def level(self, share: float) -> float:
        """Return the share of the devices that are at work at an instant; a run that has to wait
        for something goes on as it was.
        """
        going = (phase.level for phase in self.phases if share < phase.until)
        return next(going, self.phases[-1].level)

    def working(self, share: float, users: int) -> int:
        """Return how many of so many devices are at work then: always one at least."""
        return ceil(self.level(share) * users)

    def opens(self, share: float, rank: int, users: int) -> float:
        """Return when a device, by its rank, is at work next: now, later or never (inf)."""
        if rank < self.working(share, users):
            return share
        begins = zip(self.phases, self.phases[1:], strict=False)
        return next(
            (
                before.until
                for before, phase in begins
                if before.until > share and rank < ceil(phase.level * users)
            ),
            inf,
        )

    @property
    def area(self) -> float:
        """Return how much of the devices' time is spent at work."""
        begun, worked = 0.0, 0.0
        for phase in self.phases:
            worked += (phase.until - begun) * phase.level
            begun = phase.until
        return worked


def _ramp() -> tuple[Phase, ...]:
    return tuple(
        Phase(f"1/{2 ** (LEVELS - step)}", step / LEVELS, 2.0 ** (step - LEVELS))
        for step in range(1, LEVELS + 1)
    )


STEADY, RAMP, SPIKE, SOAK = "steady", "ramp", "spike", "soak"
HERD, HOSTILE = "herd", "hostile"
AWAY = 0.4  # of a herd's run: the server is away

_TENFOLD = (Phase("before", 0.4, 0.1), Phase("x10", 0.6, 1.0), Phase("after", 1.0, 0.1))
_HALVES = (Phase("first half", 0.5, 1.0), Phase("second half", 1.0, 1.0))

SHAPES: Mapping[str, Shape] = {
    STEADY: Shape((Phase("steady", 1.0, 1.0),)),
    RAMP: Shape(_ramp()),
    SPIKE: Shape(_TENFOLD, paced=True, devices=60),
    SOAK: Shape(_HALVES, paced=True, devices=20),
    HERD: Shape((Phase("herd", 1.0, 1.0),), devices=150, users=200),
    HOSTILE: Shape((Phase("under attack", 1.0, 1.0),), devices=60),
}


@dataclass(frozen=True, slots=True)
class Terms:
    """The parameters of a run for each generator."""

    shape: str
    users: int
    seconds: float
    pace: float  # seconds between two sends of a device; 0: none
    generators: int = 1
    patient: bool = False  # whether it goes on until the time is over, whatever is left to send

    @property
    def course(self) -> Shape:
        """The shape itself."""
        return SHAPES[self.shape]


def pace(shape: Shape, users: int, seconds: float, sends: int) -> float:
    """Return the seconds between two sends of a device that spread so many over a run."""
    return shape.area * users * seconds / max(sends, 1)
