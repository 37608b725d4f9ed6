"""The digest cache: each argument is computed once; errors and what was dropped, again."""

from __future__ import annotations

import pytest

from veilcount_aggregator.central import release_journal
from veilcount_aggregator.central.release_journal import DigestCache


@pytest.mark.parametrize(
    ("arguments", "calls"),
    [
        ([b"a line", bytes(bytearray(b"a line"))], [b"a line"]),
        ([b"price 5", b"price 4"], [b"price 5", b"price 4"]),
        ([b"", b""], [b"", b""]),
        ([b"x", b"xx", b"xxx", b"xxxx", b"xxxx", b"x"], [b"x", b"xx", b"xxx", b"xxxx", b"x"]),
    ],
    ids=["equal bytes", "one bit differs", "errors are not cached", "cleared when full"],
)
def test_a_result_is_computed_once_per_argument(
    arguments: list[bytes], calls: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(release_journal, "MAX_ENTRIES", 3)
    called: list[bytes] = []

    def length(argument: bytes) -> int:
        called.append(argument)
        if not argument:
            raise ValueError("nothing")
        return len(argument)

    cached = DigestCache(length)
    for argument in arguments:
        if argument:
            assert cached(argument) == len(argument)
        else:
            with pytest.raises(ValueError, match="nothing"):
                cached(argument)

    assert called == calls
