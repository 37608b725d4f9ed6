"""Messages that are w-subsets of a ground set: how they are written, read and drawn uniformly.

The message is, for w = 1, the member itself; otherwise the subset, as a mask with a bit for each
element or as its sorted members packed end to end, whichever is shorter (the mask where equal).
Sorted or mask: in which order the members were drawn is never visible.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from math import comb
from typing import Any

from ..randomness import RandomSource


class SubsetMessages:
    """A mechanism whose messages are the w-subsets of `ground` elements, a counter for each."""

    __slots__ = ()

    w: int
    messages: int
    bits: int
    label_bits: int
    masked: bool

    @property
    def ground(self) -> int:
        """The number of elements that subsets are of."""
        raise NotImplementedError

    def _set_encoding(self) -> None:
        """Fill in what follows from the ground set and w."""
        label_bits = (self.ground - 1).bit_length()
        masked = self.w > 1 and self.ground <= self.w * label_bits
        set_field(self, "messages", comb(self.ground, self.w))
        set_field(self, "label_bits", label_bits)
        set_field(self, "masked", masked)
        set_field(self, "bits", self.ground if masked else self.w * label_bits)

    @property
    def counters(self) -> int:
        return self.ground

    def cover(self, randomness: RandomSource) -> int:
        """Return a uniform subset: each misses some input, all with one probability."""
        if self.w == 1:
            return randomness.below(self.ground)
        if self.masked:
            return uniform_mask(self.ground, self.w, randomness)
        return self.packed(randomness.sample(self.ground, self.w))

    def members(self, message: int) -> tuple[int, ...]:
        """Return the elements of a message, ascending."""
        if self.w == 1:
            return (message,)
        if self.masked:
            return tuple(x for x in range(self.ground) if message >> x & 1)
        low = (1 << self.label_bits) - 1
        return tuple(message >> place * self.label_bits & low for place in range(self.w))

    def packed(self, members: Iterable[int]) -> int:
        """Return the message of more than one member, in any order."""
        if self.masked:
            return sum(1 << member for member in members)
        message = 0
        for member in sorted(members, reverse=True):
            message = message << self.label_bits | member
        return message

    def valid(self, message: int) -> bool:
        if not 0 <= message < 1 << self.bits:
            return False
        if self.masked:
            return message.bit_count() == self.w
        members = self.members(message)
        ascending = all(one < two for one, two in pairwise(members))
        return ascending and members[-1] < self.ground

    def describe_message(self, message: int, labels: Sequence[object]) -> str:
        return " or ".join(str(labels[x]) for x in self.members(message))

    def tables(self) -> dict[str, Any]:
        several = "mask" if self.masked else "members"
        encoding = "input" if self.w == 1 else several
        return {"bits": self.bits, "encoding": encoding, "label_bits": self.label_bits}


def uniform_mask(n: int, size: int, randomness: RandomSource) -> int:
    """Return a uniform subset as a mask: `RandomSource.sample` with bits for members."""
    mask = 0
    for top, member in enumerate(randomness.draws(range(n - size + 1, n + 1)), n - size):
        bit = 1 << member
        mask |= 1 << top if mask & bit else bit
    return mask


set_field = object.__setattr__  # how a frozen dataclass fills in its derived fields
