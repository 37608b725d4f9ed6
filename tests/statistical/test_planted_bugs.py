"""The audit finds every privacy bug that shipped elsewhere, and only the bug.

One row each: what is claimed, N from each of two values, and what the audit is to measure at
least (the true loss where it is finite, less what N costs; where it is infinite, about the most
that N can show). alpha = 0.001 an audit; draws are seeded, but not across
forks.
"""

from __future__ import annotations

from dataclasses import replace
from math import isclose

import pytest

from tests.statistical import planted_distributions
from tests.statistical.planted_bugs import PLANTED_BUGS
from veilcount_aggregator.analysis.audit import judge, known_bugs
from veilcount_client.testing import SeededRandomSource
from veilcount_shared.randomness import SystemRandomSource

CLAIM_TOLERANCE = 1e-12
BUGS = known_bugs.BUGS | PLANTED_BUGS


#: a quarter of N refutes each claim; how much all of N shows is with --full
PART = pytest.mark.parametrize("part", [4, pytest.param(1, marks=pytest.mark.full)])


@PART
@pytest.mark.parametrize("name", BUGS)
def test_a_planted_bug_is_found(name: str, part: int) -> None:
    """The claim is refuted; with all of N, by at least as much as N allows to show."""
    bug = replace(BUGS[name], samples=BUGS[name].samples // part)
    finding = bug.audit(SeededRandomSource(1), repaired=False)

    assert finding.broken, finding
    assert part > 1 or finding.measured >= bug.shown, finding


@PART
@pytest.mark.parametrize("name", BUGS)
def test_the_same_code_without_the_bug_is_not_broken(name: str, part: int) -> None:
    bug = replace(BUGS[name], samples=BUGS[name].samples // part)
    finding = bug.audit(SeededRandomSource(1), repaired=True)

    assert not finding.broken, finding


def test_workers_that_inherit_a_pool_by_fork_give_each_other_away() -> None:
    """Claimed 1 for one person, whatever another's worker sends: their noise cancels (infinite).

    Two real forks serve the same words: whoever knows the one answer reads the other's in clear.
    """
    first, second = (
        planted_distributions.two_workers(
            value, 1000, planted_distributions.InheritedRandomSource()
        )
        for value in (0, 1)
    )
    finding = judge(first, second, 1)

    assert finding.broken, finding
    assert finding.measured >= 4, finding


def test_workers_with_system_randomness_do_not() -> None:
    """The same forks, with sources that drop an inherited pool, keep the claim.

    These draws are the operating system's and cannot be seeded, so alpha is 1e-9.
    """
    first, second = (
        planted_distributions.two_workers(value, 1000, SystemRandomSource()) for value in (0, 1)
    )
    finding = judge(first, second, 1, alpha=1e-9)

    assert not finding.broken, finding


def test_the_plane_with_the_bug_loses_1_22_exactly() -> None:
    """Enumerated exhaustively: the odds of a hit grow by 5/4, and the claim of 1 by ln(5/4)."""
    assert planted_distributions.plane_loss(repaired=False) > 1.05
    assert isclose(planted_distributions.plane_loss(repaired=False), 1.2231, abs_tol=1e-4)
    assert planted_distributions.plane_loss(repaired=True) <= 1 + CLAIM_TOLERANCE


def test_whole_records_lose_the_amplified_epsilon_exactly() -> None:
    """Enumerated exhaustively: 1.490 of 2 attributes and 2.261 of 5, where 1 is claimed."""
    assert isclose(planted_distributions.record_loss(2, repaired=False), 1.4899, abs_tol=1e-4)
    assert isclose(planted_distributions.record_loss(5, repaired=False), 2.2609, abs_tol=1e-4)
    assert planted_distributions.record_loss(5, repaired=True) <= 1 + CLAIM_TOLERANCE


def test_the_wrong_probabilities_of_unary_encoding_lose_1_68_exactly() -> None:
    """p + (1 - p) q in place of p, at a claim of 1."""
    assert isclose(planted_distributions.true_bit_over_noise_loss(), 1.6803, abs_tol=1e-3)
