"""A seeded source of randomness, for tests."""

from __future__ import annotations

from random import Random
from typing import ClassVar

from veilcount_shared.randomness import WORD_BITS, RandomSource


class SeededRandomSource(RandomSource):
    """Draws the same stream for the same seed. Predictable, hence without any privacy."""

    __slots__ = ("_random",)

    predictable: ClassVar[bool] = True

    def __init__(self, seed: int) -> None:
        """Begin the stream of this seed."""
        self._random = Random(seed)  # noqa: S311 - for tests, which must not flake

    def word(self) -> int:
        """Return the stream's next 64 bits."""
        return self._random.getrandbits(WORD_BITS)
