"""Open strings: any text, as hashed buckets."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from string import ascii_lowercase, ascii_uppercase
from typing import Any

from ..randomness import RandomSource
from .interface import Answers, SingleValue
from .labels import MAX_LABEL, Label, normalized

BUCKET_BITS = 20  # of the hash of an open string in one half of the devices
HALVES = 2
HASH_BITS = HALVES * BUCKET_BITS  # of both together, which a curator counts by
#: characters of a string's beginning that each part of the devices hashes, to find strings by, and
#: the bits of these hashes
PREFIXES, PREFIX_BITS = (3, 5, 7, 9, 10), 18

_LOWER = str.maketrans(ascii_uppercase, ascii_lowercase)


@dataclass(frozen=True, slots=True)
class OpenStrings(SingleValue):
    """Any string: its input is a hashed bucket in each part of the devices; none is listed.

    The parts are two halves, which hash the whole string; or one for each length in `prefixes`,
    which hash the string's beginning (A to Z as a to z), so that frequent strings are found letter
    by letter. Another salt is another hash, so two strings rarely share buckets in two definitions.
    """

    salt: str
    bucket_bits: int = BUCKET_BITS
    prefixes: tuple[int, ...] = ()

    @property
    def parts(self) -> int:
        """The number of parts of the devices."""
        return len(self.prefixes) or HALVES

    @property
    def size(self) -> int:
        """The number of combinations of a bucket in each part."""
        return 1 << self.parts * self.bucket_bits

    @property
    def labels(self) -> tuple[Label, ...]:
        """Return none: strings are not listed."""
        return ()

    def input(self, value: object, randomness: RandomSource) -> int:
        """Return the buckets of a string; what cannot be a string here is drawn."""
        text = normalized(value)
        return randomness.below(self.size) if text is None else self.buckets(text)

    def buckets(self, text: str) -> int:
        """Return the buckets of a normalized string, that of the first part in the high bits."""
        if not self.prefixes:
            return self._first_bits(self.digest(text), HALVES * self.bucket_bits)
        place = 0
        for length in self.prefixes:
            bucket = self._first_bits(self.digest(text, length), self.bucket_bits)
            place = place << self.bucket_bits | bucket
        return place

    def digest(self, text: str, length: int = 0) -> bytes:
        """Return the hash of a normalized string, or of its beginning of some length."""
        hashed = f"{length}\0{text[:length].translate(_LOWER)}" if length else text
        return hashlib.sha256(f"{self.salt}\0{hashed}".encode()).digest()

    @staticmethod
    def _first_bits(digest: bytes, bits: int) -> int:
        return int.from_bytes(digest[:8], "big") >> 64 - bits

    def canonical(self) -> dict[str, Any]:
        """Return the fingerprinted fields."""
        return {
            "type": "open",
            "salt": self.salt,
            "bucket_bits": self.bucket_bits,
            "prefixes": list(self.prefixes),
        }

    def declaration(self) -> dict[str, Any]:
        """Return the keys of a definition that declare it."""
        return {"values": "open"} | ({"discover": True} if self.prefixes else {})

    @property
    def extremes(self) -> tuple[object, object]:
        """Return two strings: any two share no bucket but by chance."""
        return "a", "b"

    def answers(self) -> Answers:
        """Yield the statement of what becomes of a text."""
        key = "answers_discover" if self.prefixes else "answers_open"
        yield key, {"length": MAX_LABEL}

    def expected(self) -> tuple[str, str]:
        """Return what is wrong with another value, and what to record."""
        return f"no string of 1 to {MAX_LABEL} visible characters", "record a str"
