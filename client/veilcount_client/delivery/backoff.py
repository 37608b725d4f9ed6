"""Backoff: pure functions from failed attempts to the seconds before the next one.

Full jitter: uniform between 0 and an exponentially growing ceiling, so that devices do not come
back in step after an outage.
"""

from __future__ import annotations

import math
from email.utils import parsedate_to_datetime

from veilcount_shared import RandomSource

FIRST = 5.0
LONGEST = 3600.0
# What a server requests is rounded up to one of these. One that drew another delay for each
# request would recognize by it, when they come back, which of them are one device's.
RETRY_DELAYS = (0.0, 60.0, 300.0, 900.0, 3600.0)
LONGEST_RETRY_DELAY = RETRY_DELAYS[-1]
SPACED_CEILINGS = (4 * 3600.0, 2 * 86_400.0, 7 * 86_400.0)
GRAIN = 1000


def delay(failures: int, randomness: RandomSource) -> float:
    """Return how many seconds to wait after so many failures in a row."""
    ceiling = min(FIRST * (1 << min(failures - 1, 30)), LONGEST)
    return ceiling * randomness.below(GRAIN + 1) / GRAIN


def spaced_delay(attempts: int, randomness: RandomSource) -> float:
    """Return how many seconds to wait after so many attempts of which the server has read the body.

    Each reveals an instant at which the device ran, and a few instants identify a device. So a
    server that counts nothing receives a row three or four times in a week, not every hour.
    """
    ceiling = SPACED_CEILINGS[min(max(attempts, 1), len(SPACED_CEILINGS)) - 1]
    return ceiling * randomness.below(GRAIN + 1) / GRAIN


def retry_after(header: str | None, now: float) -> float:
    """Return one of `RETRY_DELAYS` for a Retry-After header, a number or a date."""
    seconds = _seconds(header or "", now)
    return next((each for each in RETRY_DELAYS if seconds <= each), LONGEST_RETRY_DELAY)


def _seconds(header: str, now: float) -> float:
    try:
        seconds = float(header)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(header).timestamp() - now
        except (ValueError, OverflowError):
            return 0.0
    return 0.0 if math.isnan(seconds) else seconds
