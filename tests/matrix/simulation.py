"""Simulated time: the steps of a campaign, its releases, and clients that look seldom for work."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from veilcount_client.delivery import issuance, loss_reports
from veilcount_client.recording import answer_times
from veilcount_client.state.sqlite_database import FILE
from veilcount_shared import Collection, schedule
from veilcount_shared.tokens import SlotSecret

from ..client.device_fixtures import DAY, HOUR, Device
from .cells import PERIODS, Combination, definitions

QUESTION, CHANGED, ADDED, ANOTHER = NAMES = "question", "changed", "added", "another"
SETTINGS: dict[str, Any] = {"ceiling": 99, "daily_ceiling": 99, "account": "account"}
BACKUP = "backup"
LOOKS_FOR_LOSSES = 12  # of a device, in each period: hourly looks would take most of the time
Plant = Callable[[], AbstractContextManager[object]]


# -- the calendar ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Calendar:
    """Four steps: a period each or, where a user has one, a day each."""

    bounds: tuple[float, ...]
    grace: float = 0.0  # seconds after a period in which its reports leave for a shuffler
    #: steps by which all consent earlier: in a batch they answer from the next period on
    lead: int = 0
    shift: int = 0  # likewise all that happens but records, if there is one batch alone

    def at(self, step: float) -> float:
        """Return the instant after so many steps, whole and in part.

        Before the first and after the last it is counted in steps of the same length.
        """
        whole = min(max(int(step // 1), 0), len(self.bounds) - 2)
        begin, end = self.bounds[whole], self.bounds[whole + 1]
        return begin + (step - whole) * (end - begin)

    @property
    def last_sent(self) -> float:
        """After this instant nothing new leaves."""
        return self.bounds[-1] + self.grace

    @property
    def step(self) -> float:
        return self.bounds[1] - self.bounds[0]


def calendar_of(collections: Mapping[str, Collection]) -> Calendar:
    collection = next(iter(collections.values()))  # all have the same
    begin = schedule.period_start(collection, 0).timestamp()
    grace = DAY * collection.batch.grace if collection.batch else 0.0
    if collection.periods == 1:
        lead = PERIODS if grace else 0
        days = range(PERIODS + 1)
        return Calendar(tuple(begin + DAY * day for day in days), grace, lead, lead)
    periods = range(collection.periods)
    ends = (schedule.period_end(collection, period).timestamp() for period in periods)
    return Calendar((begin, *ends), grace, 1 if grace else 0)


# -- what happens to a device ----------------------------------------------------------------------


def install(device: Device, release: Mapping[str, Collection]) -> None:
    """Start the release; agree to what it adds."""
    device.stop()
    device.start(release)
    if device.client.must_ask:
        device.client.consent(True, only="new")


def back_up(device: Device) -> None:
    device.stop()
    shutil.copy(device.place / FILE, device.place / BACKUP)
    device.start()


def restore(device: Device) -> None:
    """Put the state's file back, as a backup does, and ask again."""
    device.stop()
    for path in device.place.glob(f"{FILE}*"):
        path.unlink()
    shutil.copy(device.place / BACKUP, device.place / FILE)
    device.start()
    if device.client.must_ask:
        device.client.consent(True)


# -- quicker clients -------------------------------------------------------------------------------


def releases(combination: Combination) -> tuple[dict[str, Collection], dict[str, Collection]]:
    """Return the questions of the app, and those of its next release."""
    first = definitions(combination, QUESTION, CHANGED)
    second = definitions(combination, *NAMES)
    changed = definitions(combination, CHANGED, epsilon=0.9)
    return first, second | changed


def by_fingerprint(*files: Mapping[str, Collection]) -> dict[str, Collection]:
    return {each.fingerprint: each for file in files for each in file.values()}


@contextmanager
def simulated_time(calendar: Calendar) -> Iterator[None]:
    """Have devices look seldom for losses: it is quicker."""
    forget_draws()
    with (
        patch.object(loss_reports, "HOUR", max(HOUR, calendar.step / LOOKS_FOR_LOSSES)),
        simulated_tokens(),
    ):
        yield
    forget_draws()


def forget_draws() -> None:
    """Draw anew what is drawn once for a person: a planted bug may draw it otherwise."""
    answer_times.drawn_instants.cache_clear()
    answer_times._draw_periods.cache_clear()


@contextmanager
def simulated_tokens() -> Iterator[None]:
    """Replace blind signatures by names of their slots: who asks when stays as it is."""

    def blind(slot: SlotSecret, _key: object) -> Any:
        return SimpleNamespace(blinded=slot.pseudonym)

    with (
        patch.object(SlotSecret, "blind", blind),
        patch.object(SlotSecret, "finalize", lambda *_: bytes(256)),
        patch.object(issuance, "check_key_list", lambda keys, *_: keys),
    ):
        yield
