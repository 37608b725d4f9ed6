"""The audit finds every privacy bug that shipped elsewhere, and only the bug.

One row of the landscape's table each: what is claimed, N from each of two values, and what the
audit is to measure at least (the true loss where it is finite, less what N costs; where it is
infinite, about the most that N can show). alpha = 0.001 an audit; coins are seeded, but not across
forks.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isclose

import pytest

from tests.statistical import planted
from veilcount_aggregator.auditing import Finding, audit, judge
from veilcount_client.testing import SeededCoins
from veilcount_shared.coins import SystemCoins

CLAIM_TOLERANCE = 1e-12


@dataclass(frozen=True)
class Bug:
    """A planted bug and how it is found."""

    plant: planted.Plant
    pair: tuple[object, object]
    claimed: float
    samples: int
    shown: float
    symbol_bits: tuple[int, ...] = (1, 8)

    def audit(self, *, repaired: bool) -> Finding:
        """Audit the device with the bug, or repaired."""
        emit = self.plant(SeededCoins(1), repaired=repaired)
        return audit(
            emit, self.pair, self.claimed, samples=self.samples, symbol_bits=self.symbol_bits
        )


BUGS = {
    "last bit in clear (infinite)": Bug(planted.last_bit_in_clear, (3, 15), 1, 20_000, 7.0),
    "RAPPOR never clears a 1 (infinite)": Bug(planted.ones_never_cleared, (3, 9), 1, 20_000, 6.0),
    "unary encoding, wrong p (1.68)": Bug(planted.true_bit_over_noise, (3, 9), 1, 20_000, 1.5),
    "true value first, k=64 (4.1)": Bug(planted.true_value_first(64), (3, 40), 1, 20_000, 3.5),
    "true value first, k=1024 (6.9)": Bug(
        planted.true_value_first(1024), (5, 900), 1, 3_000, 4.2, (16,)
    ),
    "subset off by one (infinite)": Bug(planted.off_by_one, (3, 4), 1, 20_000, 6.0),
    "plane, zero rejected too early (1.22)": Bug(
        planted.zero_rejected_too_early, (5, 20), 1, 40_000, 1.1
    ),
    "RS+FD, 2 attributes (1.49)": Bug(
        planted.whole_record(2), ((0,) * 2, (1,) * 2), 1, 20_000, 1.35
    ),
    "RS+FD, 5 attributes (2.26)": Bug(
        planted.whole_record(5), ((0,) * 5, (1,) * 5), 1, 40_000, 1.75
    ),
    "permanent answer redrawn (400)": Bug(planted.redrawn, (0, 1), 2, 8_000, 6.0),
}


@pytest.mark.parametrize("name", BUGS)
def test_a_planted_bug_is_found(name: str) -> None:
    """The claim is refuted, by at least as much as N allows to show."""
    finding = BUGS[name].audit(repaired=False)
    print(finding)

    assert finding.broken, finding
    assert finding.measured >= BUGS[name].shown, finding


@pytest.mark.parametrize("name", BUGS)
def test_the_same_code_without_the_bug_is_not_broken(name: str) -> None:
    """It was the bug that the audit found."""
    finding = BUGS[name].audit(repaired=True)
    print(finding)

    assert not finding.broken, finding


def test_workers_that_inherit_a_pool_by_fork_give_each_other_away() -> None:
    """Claimed 1 for one person, whatever another's worker sends: their noise cancels (infinite).

    Two real forks serve the same words: whoever knows the one answer reads the other's in clear.
    """
    first, second = (planted.two_workers(value, 1000, planted.InheritedCoins()) for value in (0, 1))
    finding = judge(first, second, 1)
    print(finding)

    assert finding.broken, finding
    assert finding.measured >= 4, finding


def test_workers_with_system_coins_do_not() -> None:
    """The same forks, with coins that drop an inherited pool, keep the claim.

    These coins are the operating system's and cannot be seeded, so alpha is 1e-9.
    """
    first, second = (planted.two_workers(value, 1000, SystemCoins()) for value in (0, 1))
    finding = judge(first, second, 1, alpha=1e-9)

    assert not finding.broken, finding


def test_the_plane_with_the_bug_loses_1_22_exactly() -> None:
    """Enumerated over all coins: the odds of a hit grow by 5/4, and the claim of 1 by ln(5/4)."""
    assert planted.plane_loss(repaired=False) > 1.05
    assert isclose(planted.plane_loss(repaired=False), 1.2231, abs_tol=1e-4)
    assert planted.plane_loss(repaired=True) <= 1 + CLAIM_TOLERANCE


def test_whole_records_lose_the_amplified_epsilon_exactly() -> None:
    """Enumerated over all coins: 1.490 of 2 attributes and 2.261 of 5, where 1 is claimed."""
    assert isclose(planted.record_loss(2, repaired=False), 1.4899, abs_tol=1e-4)
    assert isclose(planted.record_loss(5, repaired=False), 2.2609, abs_tol=1e-4)
    assert planted.record_loss(5, repaired=True) <= 1 + CLAIM_TOLERANCE


def test_the_wrong_probabilities_of_unary_encoding_lose_1_68_exactly() -> None:
    """p + (1 - p) q in place of p, at a claim of 1."""
    assert isclose(planted.true_bit_over_noise_loss(), 1.6803, abs_tol=1e-3)
