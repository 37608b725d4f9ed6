"""The planted bugs, each with the audit that catches it: an audit that finds nothing may be blind.

`shown` is what the audit is to measure at least: the true loss where it is finite, less what the
samples cost; where it is infinite, about the most that so many samples can show.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from veilcount_shared.randomness import RandomSource

from . import known_bugs
from .audit import AuditResult, audit


@dataclass(frozen=True, slots=True)
class Bug:
    """A planted bug and how it is found."""

    plant: known_bugs.Plant
    pair: tuple[object, object]
    claimed: float
    samples: int
    shown: float
    symbol_bits: tuple[int, ...] = (1, 8)

    def audit(
        self, randomness: RandomSource, *, repaired: bool, alpha: float = 0.001
    ) -> AuditResult:
        """Audit the device with the bug, or repaired."""
        return audit(
            self.plant(randomness, repaired=repaired),
            self.pair,
            self.claimed,
            samples=self.samples,
            alpha=alpha,
            symbol_bits=self.symbol_bits,
        )


#: by what went wrong, with what is really lost
BUGS: Mapping[str, Bug] = {
    "last bit in clear (infinite)": Bug(known_bugs.last_bit_in_clear, (3, 15), 1, 20_000, 7.0),
    "RAPPOR never clears a 1 (infinite)": Bug(
        known_bugs.ones_never_cleared, (3, 9), 1, 20_000, 6.0
    ),
    "unary encoding, wrong p (1.68)": Bug(known_bugs.true_bit_over_noise, (3, 9), 1, 20_000, 1.5),
    "true value first, k=64 (4.1)": Bug(known_bugs.true_value_first(64), (3, 40), 1, 20_000, 3.5),
    "true value first, k=1024 (6.9)": Bug(
        known_bugs.true_value_first(1024), (5, 900), 1, 3_000, 4.2, (16,)
    ),
    "subset off by one (infinite)": Bug(known_bugs.off_by_one, (3, 4), 1, 20_000, 6.0),
    "plane, zero rejected too early (1.22)": Bug(
        known_bugs.zero_rejected_too_early, (5, 20), 1, 40_000, 1.1
    ),
    "RS+FD, 2 attributes (1.49)": Bug(
        known_bugs.whole_record(2), ((0,) * 2, (1,) * 2), 1, 20_000, 1.35
    ),
    "RS+FD, 5 attributes (2.26)": Bug(
        known_bugs.whole_record(5), ((0,) * 5, (1,) * 5), 1, 40_000, 1.75
    ),
    "permanent answer redrawn (400)": Bug(known_bugs.redrawn, (0, 1), 2, 8_000, 6.0),
}
