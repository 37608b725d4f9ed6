"""The source of randomness.

Everything random in a report comes from `below(n)` and `bernoulli(num, den)`, both exact: a uniform
integer by rejection, never a float. What differs between a device, a proof and a test is only where
the 64-bit words come from.
"""

from __future__ import annotations

import os
import struct
import weakref
from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import ClassVar, TypeVar

Item = TypeVar("Item")

WORD_BITS = 64
WORDS = 1 << WORD_BITS  # a threshold `a` of a mechanism means the probability a / WORDS


class RandomSource(ABC):
    """A source of exact random draws made of uniform 64-bit words, always passed in explicitly."""

    __slots__ = ()

    #: whether someone else could know the words: such a source is for tests only
    predictable: ClassVar[bool] = False

    @abstractmethod
    def word(self) -> int:
        """Return 64 uniform bits that were never returned before."""

    def below(self, n: int) -> int:
        """Return a uniform integer in 0..n-1.

        The top bits of one word (or of several, end to end) are uniform over a power of two; what
        is not below n is thrown away, so the rest is uniform over n [rejection; CKS20, sec. 5].
        For n = 1 these are no bits, of no word.
        """
        bits = (n - 1).bit_length()
        if not 0 < bits <= WORD_BITS:
            return self._below_words(n, bits)
        shift = WORD_BITS - bits
        drawn = self.word() >> shift
        while drawn >= n:
            drawn = self.word() >> shift
        return drawn

    def draws(self, bounds: Iterable[int]) -> list[int]:
        """Return a uniform integer below each bound, of at most 2^64."""
        return [self.below(n) for n in bounds]

    def bernoulli(self, numerator: int, denominator: int = WORDS) -> bool:
        """Return True with probability numerator/denominator, exactly."""
        if denominator == WORDS:
            return self.word() < numerator
        return self.below(denominator) < numerator

    def sample(self, n: int, size: int) -> set[int]:
        """Return a uniform subset of 0..n-1 of this size, by Floyd's algorithm [BF87]."""
        drawn: set[int] = set()
        for top, member in enumerate(self.draws(range(n - size + 1, n + 1)), n - size):
            drawn.add(top if member in drawn else member)
        return drawn

    def shuffled(self, items: Iterable[Item]) -> list[Item]:
        """Return the items in a uniform order [Fisher-Yates]."""
        order = list(items)
        for last in range(len(order) - 1, 0, -1):
            other = self.below(last + 1)
            order[last], order[other] = order[other], order[last]
        return order

    def _below_words(self, n: int, bits: int) -> int:
        words = -(-bits // WORD_BITS)
        shift = words * WORD_BITS - bits
        while True:
            drawn = 0
            for _ in range(words):
                drawn = drawn << WORD_BITS | self.word()
            if drawn >> shift < n:
                return drawn >> shift


class SystemRandomSource(RandomSource):
    """The operating system's generator, drawn a pool at a time.

    A pooled word leaves the list with the `pop` that serves it: `pop` is atomic, so no two threads
    get the same word, no lock can be held across a fork, and no served word stays in memory. A
    forked child drops the inherited pool before its first draw. What cannot be seen from inside is
    a snapshot of a whole running machine, restored twice.
    """

    __slots__ = ("__weakref__", "_pid", "_pool")

    _POOL_WORDS = 256
    _UNPACK = struct.Struct(f"={_POOL_WORDS}Q").unpack

    def __init__(self) -> None:
        self._pool: list[int] = []
        self._pid = os.getpid()
        _live.add(self)

    def word(self) -> int:
        """Return 64 bits of the operating system that no one else was served."""
        self._notice_fork()
        while True:
            try:
                return self._pool.pop()
            except IndexError:
                self._fill()

    def draws(self, bounds: Iterable[int]) -> list[int]:
        """Return a uniform integer below each bound, with one check of the process for all."""
        self._notice_fork()
        pop, drawn = self._pool.pop, []
        for n in bounds:
            shift, number = WORD_BITS - (n - 1).bit_length(), n
            while number >= n:
                try:
                    number = pop() >> shift
                except IndexError:
                    self._fill()
            drawn.append(number)
        return drawn

    def _notice_fork(self) -> None:
        # The pid is compared as well as the fork hook registered: a C host (uWSGI, an embedding
        # application) may fork without running Python's hooks. `getpid` is a system call.
        if self._pid != os.getpid():
            self.drop()

    def _fill(self) -> None:
        self._pool.extend(self._UNPACK(os.urandom(self._POOL_WORDS * WORD_BITS // 8)))

    def drop(self) -> None:
        """Forget the pool. In place, so that a draw interrupted by the fork sees it empty."""
        self._pool.clear()
        self._pid = os.getpid()


# The only global state of this package: which pools a forked child has to drop.
_live: weakref.WeakSet[SystemRandomSource] = weakref.WeakSet()


def _drop_all() -> None:
    for randomness in list(_live):
        randomness.drop()


if hasattr(os, "register_at_fork"):  # absent on Windows, where there is no fork
    os.register_at_fork(after_in_child=_drop_all)
