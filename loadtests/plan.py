"""The plan of a run: its load, its store, its faults."""

from __future__ import annotations

from dataclasses import dataclass

from .load_profiles import AWAY, HERD, HOSTILE, SHAPES, STEADY, Shape

FAULT_BEGINS = 0.4  # the share of a run after which a fault begins
RECOVERY_SECONDS = 120  # seconds that whatever was down may take to be up again
AFTER = 0.4  # the share of its time that a run goes on then, at least
GROWTH = 32.0  # megabytes that a server may come to hold in a run that watches its memory
STORE_GROWTH = 128  # megabytes that a store may come to hold under attack
OUTAGE = "away"  # what a herd waits for, unless another fault is named


@dataclass(frozen=True, slots=True)
class Plan:
    """One run."""

    store: str
    users: int
    seconds: int
    workers: int
    devices: int
    seed: int
    shape: str = STEADY
    fault: str = ""
    replicas: int = 0  # that each reply waits for
    real: int = 0  # devices that are real clients
    generators: int = 1
    page: int | None = None  # the port of locust's page
    p99: float | None = None  # milliseconds
    errors: float | None = None  # percent
    growth: float | None = None  # megabytes
    locust_flags: tuple[str, ...] = ()

    @property
    def course(self) -> Shape:
        """The shape itself."""
        return SHAPES[self.shape]

    @property
    def hostile(self) -> bool:
        """Whether attackers are among the devices."""
        return self.shape == HOSTILE

    @property
    def paced(self) -> bool:
        """Whether what there is to send is spread over the time: a fault must find it sending."""
        return self.course.paced or (bool(self.fault) and self.shape != HERD)

    @property
    def fault_begins(self) -> float:
        """When a fault begins: a herd gathers from the beginning."""
        return 0.0 if self.shape == HERD else FAULT_BEGINS

    @property
    def at_most(self) -> int:
        """The seconds after which locust ends by itself."""
        return self.seconds + (RECOVERY_SECONDS if self.fault else 0)

    @property
    def lasts(self) -> float | None:
        """How much of the run the fault lasts, if not as long as it usually does."""
        return AWAY if self.shape == HERD else None
