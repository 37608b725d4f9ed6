"""What planted bugs lose, exactly; and one that takes two processes.

Losses are enumerated over all outcomes of the randomness.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from math import log
from struct import Struct

from tests.enumeration import Distribution, enumerate_distribution, max_likelihood_ratio
from tests.statistical.planted_bugs import PLANE, plane_attempt, whole_record
from veilcount_aggregator.analysis.audit.known_bugs import KEEP, ONE
from veilcount_shared.mechanisms import SubsetSelection
from veilcount_shared.randomness import WORD_BITS, WORDS, RandomSource


def true_bit_over_noise_loss() -> float:
    """Return its exact loss: the bit of one value is 1 and that of the other 0."""
    p = Fraction(KEEP, WORDS)
    q = 1 - p
    on = p + (1 - p) * q
    return log(on * (1 - q) / (q * (1 - on)))


def plane_loss(*, repaired: bool) -> float:
    """Return its exact loss: of the outcomes that are not sent back to the start."""
    return log(
        max_likelihood_ratio(
            [_projective_distribution(x, repaired=repaired) for x in range(PLANE.k)]
        )
    )


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

    return log(
        max_likelihood_ratio([enumerate_distribution(partial(reported, bit)) for bit in (0, 1)])
    )


# -- processes ---


class InheritedRandomSource(RandomSource):
    """A pool of system words that a forked child goes on serving: no look at the process id."""

    POOL_WORDS = 256
    _UNPACK = Struct(f"={POOL_WORDS}Q").unpack

    def __init__(self) -> None:
        self._pool: list[int] = []

    def word(self) -> int:
        if not self._pool:
            self._pool.extend(self._UNPACK(os.urandom(self.POOL_WORDS * WORD_BITS // 8)))
        return self._pool.pop()


FORKED = 100  # reports of one worker: each takes two words at most, so they end before the pool


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
    """Return what a forked child answers, through a pipe."""
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        # Since 3.12 a fork beside running threads warns; this child runs no library and no lock.
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
