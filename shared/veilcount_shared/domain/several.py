"""Several values of a list: all that apply."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import Any

from ..errors import DefinitionError
from ..randomness import RandomSource
from .choices import Choice
from .interface import Answers, SingleValue, ValuePart
from .labels import Label

MAX_LISTED = 60  # values: an input is a mask in one word
READ = 1000  # entries of a recorded list
FEWEST_MOST = 2


@dataclass(frozen=True)
class Several(SingleValue):
    """Any of the values of a list, also none: an input is a mask, the first value the lowest bit.

    Of more than `most` so many are drawn, which biases shares toward the values of people who tick
    few; without `most` all of them count.
    """

    choice: Choice
    most: int | None = None

    def __post_init__(self) -> None:
        if self.size > MAX_LISTED:
            fix = f"at most {MAX_LISTED} values are ticked: list fewer, or ask for one of them"
            raise DefinitionError("values", f"{self.size} values", fix)
        if self.most is not None and not FEWEST_MOST <= self.most < self.size:
            fix = f"give {FEWEST_MOST} to {self.size - 1}, fewer than there are values; or"
            if self.size == FEWEST_MOST:
                fix = "two values have none:"
            raise DefinitionError("most", self.most, f"{fix} remove it for one drawn bit a report")

    @property
    def size(self) -> int:
        """The number of values that may be ticked."""
        return self.choice.size

    @property
    def labels(self) -> tuple[Label, ...]:
        """Return the values, in the order of their bits."""
        return self.choice.labels

    def input(self, value: object, randomness: RandomSource) -> int:
        """Return the mask of a list or a set; anything else is drawn, as is an unknown entry."""
        entries = _entries(value)
        if entries is None:
            return self._capped(randomness.below(1 << self.size), randomness)
        mask = 0
        for entry in entries:
            mask |= 1 << self.choice.input(entry, randomness)
        return self._capped(mask, randomness)

    def _capped(self, mask: int, randomness: RandomSource) -> int:
        """Return at most so many of the ticked values, drawn."""
        if self.most is None or mask.bit_count() <= self.most:
            return mask
        ticked = [value for value in range(self.size) if mask >> value & 1]
        return sum(1 << ticked[place] for place in randomness.sample(len(ticked), self.most))

    def canonical(self) -> dict[str, Any]:
        """Return the fingerprinted fields."""
        return {**self.choice.canonical(), "type": "several", "most": self.most}

    def declaration(self) -> dict[str, Any]:
        """Return the keys of a definition that declare it."""
        most = {} if self.most is None else {"most": self.most}
        return self.choice.declaration() | {"choose": "several"} | most

    @property
    def extremes(self) -> tuple[object, object]:
        """Return no value, and as many as count."""
        return (), self.labels[: self.most]

    def answers(self) -> Answers:
        """Yield the statement of the values, and of how many count."""
        if self.most is None:
            yield "answers_several", {"labels": self.choice.named}
        else:
            yield "answers_several_most", {"labels": self.choice.named, "most": self.most}

    def split(self, value: object) -> list[tuple[ValuePart, object]]:
        """Return each entry with the list's domain; the whole, if it is no list or too long."""
        entries = _entries(value)
        if entries is None:
            return [(self, value)]
        own: list[tuple[ValuePart, object]] = [(self.choice, entry) for entry in entries]
        return own if self.most is None or len(own) <= self.most else [*own, (self, value)]

    def expected(self) -> tuple[str, str]:
        """Return what is wrong with another value, and what to record."""
        if self.most is None:
            return "no list and no set", "record a list or a set of values"
        return (
            f"no list or set of at most {self.most} values",
            f"record a list or a set, and let people tick at most {self.most}",
        )


def _entries(value: object) -> tuple[object, ...] | None:
    """Return the entries of a list or a set, whatever its own code does; None: it is neither."""
    try:
        if isinstance(value, list | tuple | set | frozenset):
            return tuple(islice(value, READ))
    except Exception:  # noqa: BLE001 - a value's own code may raise anything: it is unknown
        return None
    return None
