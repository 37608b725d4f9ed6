"""The audit finds every privacy bug that shipped elsewhere, and only the bug.

One row each: what is claimed, N from each of two values, and what the audit is to measure at
least (the true loss where it is finite, less what N costs; where it is infinite, about the most
that N can show). alpha = 0.001 an audit; draws are seeded, but not across
forks.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import partial
from math import isclose, log
from struct import Struct

import pytest

from veilcount_analysis.audit import judge, known_bugs
from veilcount_analysis.audit.known_bugs import KEEP, ONE
from veilcount_client.testing import SeededRandomSource
from veilcount_shared.mechanisms import SubsetSelection
from veilcount_shared.randomness import WORD_BITS, WORDS, RandomSource, SystemRandomSource

from ..enumeration import Distribution, enumerate_distribution, max_likelihood_ratio
from .planted_bugs import PLANE, PLANTED_BUGS, plane_attempt, whole_record

CLAIM_TOLERANCE = 1e-12
BUGS = known_bugs.BUGS | PLANTED_BUGS


@pytest.mark.parametrize("part", [4, pytest.param(1, marks=pytest.mark.full)])
@pytest.mark.parametrize("name", BUGS)
def test_a_planted_bug_is_found_and_its_repair_is_not_broken(name: str, part: int) -> None:
    """A quarter of N refutes the claim; all of N by at least as much as N allows to show."""
    bug = replace(BUGS[name], samples=BUGS[name].samples // part)
    found, repaired = (bug.audit(SeededRandomSource(1), repaired=each) for each in (False, True))

    assert found.broken, found
    assert part > 1 or found.measured >= bug.shown, found
    assert not repaired.broken, repaired


# -- two processes ---------------------------------------------------------------------------------


class InheritedRandomSource(RandomSource):
    """A pool of system words that a forked child goes on serving: no look at the process id."""

    POOL_WORDS = 1024
    _UNPACK = Struct(f"={POOL_WORDS}Q").unpack

    def __init__(self) -> None:
        self._pool: list[int] = []

    def word(self) -> int:
        if not self._pool:
            self._pool.extend(self._UNPACK(os.urandom(self.POOL_WORDS * WORD_BITS // 8)))
        return self._pool.pop()


FORKED = 500  # reports of one worker: each takes two words at most, so they end before the pool


def two_workers(value: int, samples: int, randomness: RandomSource) -> list[bytes]:
    """Return joint messages of two forked workers: one answers `value`, the other a known 0.

    The pool is filled before each fork, as it is by a server that randomizes once while it starts.
    """
    coin = SubsetSelection.for_epsilon(ONE, 2, 1)
    joint: list[bytes] = []
    while len(joint) < samples:
        randomness.word()
        streams = [_forked(partial(_stream, coin, x, randomness)) for x in (value, 0)]
        joint += map(bytes, zip(*streams, strict=True))
        # the parent serves the rest of its pool, so that the next fork inherits another
        for _ in range(InheritedRandomSource.POOL_WORDS - 1):
            randomness.word()
    return joint[:samples]


def _stream(coin: SubsetSelection, x: int, randomness: RandomSource) -> bytes:
    return bytes(coin.randomize(x, randomness) for _ in range(FORKED))


def _forked(work: Callable[[], bytes]) -> bytes:
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        # Since 3.12 a fork while threads run warns; this child runs no library and no lock.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        try:
            os.write(writing, work())
        finally:
            os._exit(0)  # neither pytest nor its plugins go on in the child
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        answer = pipe.read()
    os.waitpid(child, 0)
    return answer


def test_workers_that_inherit_a_pool_by_fork_give_each_other_away() -> None:
    """Claimed 1 for one person, whatever another's worker sends: their noise cancels (infinite).

    Two real forks serve the same words: whoever knows the one answer reads the other's in clear.
    """
    first, second = (two_workers(value, 1000, InheritedRandomSource()) for value in (0, 1))
    finding = judge(first, second, 1)

    assert finding.broken, finding
    assert finding.measured >= 4, finding


def test_workers_with_system_randomness_do_not() -> None:
    """The same forks, with sources that drop an inherited pool, keep the claim.

    These draws are the operating system's and cannot be seeded, so alpha is 1e-9.
    """
    first, second = (two_workers(value, 1000, SystemRandomSource()) for value in (0, 1))
    finding = judge(first, second, 1, alpha=1e-9)

    assert not finding.broken, finding


# -- the loss of a bug, enumerated over all outcomes of the randomness -----------------------------


def plane_loss(*, repaired: bool) -> float:
    """Return its exact loss: of the outcomes that are not sent back to the start."""
    inputs = [_projective_distribution(x, repaired=repaired) for x in range(PLANE.k)]
    return log(max_likelihood_ratio(inputs))


def _projective_distribution(x: int, *, repaired: bool) -> Distribution:
    again = -1

    def once(randomness: RandomSource) -> int:
        message = plane_attempt(x, randomness, repaired=repaired)
        return again if message is None else message

    found = enumerate_distribution(once)
    sent = 1 - found.pop(again, Fraction(0))
    return {message: weight / sent for message, weight in found.items()}


def record_loss(attributes: int, *, repaired: bool) -> float:
    """Return its exact loss between the two records that differ in all attributes."""
    plant = whole_record(attributes)

    def reported(bit: int, randomness: RandomSource) -> int:
        return int.from_bytes(plant(randomness, repaired=repaired)((bit,) * attributes), "big")

    records = [enumerate_distribution(partial(reported, bit)) for bit in (0, 1)]
    return log(max_likelihood_ratio(records))


def test_planted_bugs_lose_their_stated_epsilon() -> None:
    """Enumerated exhaustively, where 1 is claimed; the wrong probability is p + (1 - p) q for p.

    The odds of a plane's hit grow by 5/4, and its loss by ln(5/4).
    """
    p = Fraction(KEEP, WORDS)
    on = p + (1 - p) ** 2

    assert isclose(plane_loss(repaired=False), 1.2231, abs_tol=1e-4)
    assert isclose(record_loss(2, repaired=False), 1.4899, abs_tol=1e-4)
    assert isclose(record_loss(5, repaired=False), 2.2609, abs_tol=1e-4)
    assert isclose(log(on * p / ((1 - p) * (1 - on))), 1.6803, abs_tol=1e-3)
    assert plane_loss(repaired=True) <= 1 + CLAIM_TOLERANCE
    assert record_loss(5, repaired=True) <= 1 + CLAIM_TOLERANCE
