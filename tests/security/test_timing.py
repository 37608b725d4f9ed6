"""How long a wrong key takes says nothing of the right one."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from string import ascii_letters

import pytest
from scipy.stats import mannwhitneyu

from veilcount_aggregator.auth.api_keys import ApiKey, ApiKeys, Role
from veilcount_aggregator.auth.api_keys import digest_secret as digest_of

ALPHA = 1e-4
GUESSES = 4_000  # of each kind
END = 5  # letters of a near guess that are wrong
SECRET = "veilcount_admin_" + "Ab3_" * 10 + "xyz"  # as long as a real one

Find = Callable[[str], object]


class RecordedLookups(Mapping[str, ApiKey]):
    """The keys of a ring, and all names that were looked up."""

    def __init__(self, keys: Mapping[str, ApiKey]) -> None:
        """Wrap the keys."""
        self._keys = keys
        self.requested: list[str] = []

    def __getitem__(self, name: str) -> ApiKey:
        """Record a look-up."""
        self.requested.append(name)
        return self._keys[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def __len__(self) -> int:
        return len(self._keys)


def ring() -> ApiKeys:
    """Return a ring with one key."""
    key = ApiKey(
        "00000000",
        Role.ADMIN,
        "",
        digest_of(SECRET),
        datetime(2026, 12, 3, tzinfo=UTC).date().isoformat(),
    )
    return ApiKeys({key.digest: key})


def guesses(source: random.Random) -> list[tuple[bool, str]]:
    """Return wrong keys in no order: half of them right but for their end, half right nowhere.

    Each is asked once, since what one hash takes is its own: where it falls in a table, say. All
    lie in memory as if they had just come in, or ten nanoseconds of making them would show.
    """
    result = []
    for near in source.sample((True, False), 2 * GUESSES, counts=(GUESSES, GUESSES)):
        letters = "".join(source.choices(ascii_letters, k=len(SECRET)))
        guess = SECRET[:-END] + letters[-END:] if near else letters
        result.append((near, guess.encode()))
    return [(near, guess.decode()) for near, guess in result]


def test_a_key_is_looked_for_by_its_hash_alone() -> None:
    """So a comparison that ends early tells of a hash, which nobody can choose."""
    keys = RecordedLookups(ring().keys)
    found = ApiKeys(keys).find(SECRET)
    for wrong in (SECRET[:-1], SECRET + "x", SECRET[:-1] + "!", "", "x" * 100_000, "\udcff"):
        assert ApiKeys(keys).find(wrong) is None

    assert found is not None
    assert all(len(each) == 64 and SECRET not in each for each in keys.requested)
    assert len(set(keys.requested)) == len(keys.requested) == 7


def test_no_hash_shares_a_beginning_with_that_of_a_near_guess() -> None:
    """Of 2,000 keys that differ in one letter, none shares more letters than strangers do."""
    right = digest_of(SECRET)
    shared = [
        _shared(right, digest_of(SECRET[:-1] + chr(code))) for code in range(0x4E00, 0x4E00 + 2_000)
    ]

    assert max(shared) < 8  # one of 2,000 shares 8 with a chance of 2,000 / 16^8


def _shared(one: str, other: str) -> int:
    return next(
        (place for place, (a, b) in enumerate(zip(one, other, strict=True)) if a != b), len(one)
    )


# -- measured --------------------------------------------------------------------------------------


def early(secret: str) -> bool:
    """Compare as nobody should: letter by letter, until one differs."""
    return len(secret) == len(SECRET) and all(a == b for a, b in zip(secret, SECRET, strict=True))


def p_value(find: Find, seed: int) -> float:
    """Return how likely times as different as these are, if near and far guesses take the same."""
    times: dict[bool, list[int]] = {True: [], False: []}
    for near, guess in guesses(random.Random(seed)):
        begun = time.perf_counter_ns()
        find(guess)
        times[near].append(time.perf_counter_ns() - begun)
    return float(mannwhitneyu(times[True], times[False]).pvalue)


@pytest.mark.full
def test_a_near_guess_takes_as_long_as_a_far_one() -> None:
    """Alpha 1e-4; a busy machine may make one run look odd, and not three."""
    found = ring().find

    assert max(p_value(found, seed) for seed in range(3)) > ALPHA


@pytest.mark.full
def test_a_comparison_that_ends_early_would_be_noticed() -> None:
    """Every time."""
    assert max(p_value(early, seed) for seed in range(3)) < ALPHA
