"""A store of crowds as one process has it open."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from .crowd_folder import CrowdFolder
from .crowd_states import CrowdState, CrowdStates
from .disk import Disk
from .served_crowds import ServedCrowd, ServedCrowds
from .store_settings import StoreSettings
from .witness import Witness

HAND_OVER_LOCK = "hand-over.lock"


def system_clock() -> datetime:
    """Return the instant that the system's clock says."""
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class CrowdStore:
    """What holds reports and what hands them over need alike."""

    crowds: Path
    served: ServedCrowds
    states: CrowdStates
    witness: Witness
    disk: Disk
    clock: Callable[[], datetime]

    @classmethod
    def open(
        cls, settings: StoreSettings, witness: Path | None, development: timedelta | None = None
    ) -> CrowdStore:
        """Open a store with the operating system's files and clock."""
        disk = Disk()
        states = CrowdStates(settings.crowds, disk)
        served = ServedCrowds(settings, development)
        knows = Witness(witness, disk, settings.witness_id)
        return cls(settings.crowds, served, states, knows, disk, system_clock)

    def folder(self, crowd_id: bytes) -> CrowdFolder:
        """Return the folder of a crowd."""
        return CrowdFolder(self.crowds, crowd_id, self.disk)

    def alone(self) -> AbstractContextManager[None]:
        """Be the one process that hands over: a server that was killed may leave another one."""
        return self.disk.lock(self.crowds / HAND_OVER_LOCK, exclusive=True)

    def begin(self, crowd: ServedCrowd) -> CrowdState:
        """Make the folder and then the row of a crowd, unless it has begun; return its state."""
        state = self.states.state(crowd.crowd_id)
        if state is None:
            self.folder(crowd.crowd_id).make()
            self.open_row(crowd)
            state = self.states.state(crowd.crowd_id)
        return CrowdState.OPEN if state is None else state

    def open_row(self, crowd: ServedCrowd) -> None:
        """Make the row of a crowd, unless it has begun."""
        fingerprint = crowd.collection.fingerprint
        self.states.open(crowd.crowd_id, fingerprint, crowd.period, crowd.closes)
