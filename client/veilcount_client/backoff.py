"""When to try again: pure functions of what happened.

Full jitter: uniform between nothing and an exponentially growing ceiling, so that a crowd of
devices does not come back in step after an outage.
"""

from __future__ import annotations

import math
from email.utils import parsedate_to_datetime

from veilcount_shared import Coins

FIRST = 5.0
LONGEST = 3600.0
LONGEST_ASKED = 24 * 3600.0  # what a server may ask for; a hostile one asks for years
GRAIN = 1000


def delay(failures: int, coins: Coins) -> float:
    """Return how many seconds to wait after so many failures in a row."""
    ceiling = min(FIRST * (1 << min(failures - 1, 30)), LONGEST)
    return ceiling * coins.below(GRAIN + 1) / GRAIN


def asked(header: str | None, now: float) -> float:
    """Return the seconds that a Retry-After header asks for: a number, or a date; else none."""
    if not header:
        return 0.0
    try:
        seconds = float(header)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(header).timestamp() - now
        except (ValueError, OverflowError):
            return 0.0
    return 0.0 if math.isnan(seconds) else min(max(seconds, 0.0), LONGEST_ASKED)
