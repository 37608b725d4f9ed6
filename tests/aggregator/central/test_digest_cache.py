"""What bytes say is worked out once, and anew for whoever changes a bit."""

from __future__ import annotations

import pytest

from veilcount_aggregator.central import digest_cache
from veilcount_aggregator.central.digest_cache import DigestCache


class Reader:
    """Tells how long bytes are, and remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[bytes] = []

    def __call__(self, given: bytes) -> int:
        self.asked.append(given)
        if not given:
            raise ValueError("nothing")
        return len(given)


def test_the_same_bytes_are_read_once() -> None:
    reader = Reader()
    told = DigestCache(reader)
    twice = [told(bytes(bytearray(b"a line"))) for _ in range(2)]

    assert twice == [6, 6]
    assert reader.asked == [b"a line"]


def test_one_bit_makes_them_others() -> None:
    reader = Reader()
    told = DigestCache(reader)
    told(b"price 5")
    told(b"price 4")

    assert reader.asked == [b"price 5", b"price 4"]


def test_an_error_is_raised_every_time() -> None:
    reader = Reader()
    told = DigestCache(reader)
    for _ in range(2):
        with pytest.raises(ValueError, match="nothing"):
            told(b"")

    assert reader.asked == [b"", b""]


def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(digest_cache, "MAX_ENTRIES", 3)
    reader = Reader()
    told = DigestCache(reader)
    lengths = [told(b"x" * length) for length in (1, 2, 3, 4, 4, 1)]

    assert lengths == [1, 2, 3, 4, 4, 1]
    assert list(map(len, reader.asked)) == [1, 2, 3, 4, 1]
