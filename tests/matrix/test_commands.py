"""The promises of an app that runs all day, kept by commands whose sender stays for the hour.

Devices run a command a day, all in the same public hour, and their sender afterwards. Same rows,
adversaries and promises as of devices that run all day; the false-alarm probability is theirs too,
1e-4 for each row and adversary, and everything is seeded.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from random import Random
from typing import Any
from unittest.mock import patch

import pytest

from veilcount_client.delivery.uploader import Uploader
from veilcount_client.integrations.cli_kit import sender
from veilcount_client.settings import JITTER

from ..client.device_fixtures import DAY, HOUR, MINUTE, number
from . import lives
from .cells import FIRST_ROWS, ONE_BY_ONE, Combination
from .simulation import Calendar
from .test_matrix import joined, quiet

__all__ = ["quiet"]

MORNING = 9 * HOUR
SECONDS = 2.0  # of a command whose reports nobody else sends
ROWS = [row for row in FIRST_ROWS if row.way == ONE_BY_ONE]
in_rows = pytest.mark.parametrize("combination", ROWS, ids=str)


def runs_of(
    person: int, calendar: Calendar, _: str, *, seconds: float
) -> list[tuple[float, float]]:
    """Return when a device runs: from a command's start on, on four days of each step at most."""
    begin = calendar.at(lives.EARLIEST - calendar.lead) - MINUTE
    end, days = calendar.last_sent + 2 * DAY, max(1, round(calendar.step / DAY / 4))
    mornings = (day * DAY + MORNING for day in range(int(begin // DAY), int(end // DAY) + 1, days))
    starts = (
        morning + Random(number("start", person, morning)).uniform(0, HOUR) for morning in mornings
    )
    return [(start, start + seconds) for start in starts]


@contextmanager
def commands() -> Iterator[None]:
    """Each run has a sender, which stays as long as the kit's."""
    stays = partial(runs_of, seconds=JITTER + sender.MARGIN)
    with patch.object(lives, "sessions_of", stays):
        yield


@contextmanager
def burst() -> Iterator[None]:
    """Wrong, and once documented: a run sends at its start all that earlier ones have stored."""
    run = Uploader.run

    def hurried(uploader: Uploader, **_: Any) -> None:
        run(uploader, hurry=True)

    brief = partial(runs_of, seconds=SECONDS)
    with patch.object(lives, "sessions_of", brief), patch.object(Uploader, "run", hurried):
        yield


@in_rows
def test_nobody_joins_the_rows_of_a_command(combination: Combination) -> None:
    assert joined(combination, commands) == []


@pytest.mark.parametrize("combination", [row for row in ROWS if row.linkage != "token"], ids=str)
def test_a_burst_at_the_start_is_found(combination: Combination) -> None:
    assert joined(combination, burst)
