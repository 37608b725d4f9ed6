"""How long a wrong key takes says nothing of the right one: a key is looked up by its hash alone.

Only the comparison of hashes depends on what is guessed, and nobody can choose a hash that begins
like that of a secret.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial

from veilcount_aggregator.records.api_keys import ApiKey, ApiKeys, Role, digest_secret

SECRET = "veilcount_admin_" + "Ab3_" * 10 + "xyz"  # as long as a real one
GUESSES = (SECRET, SECRET[:-1], SECRET + "x", SECRET[:-1] + "!", "", "x" * 100_000, "\udcff")


class RecordedLookups(Mapping[str, ApiKey]):
    """The keys of a ring with one key, and all names that were looked up."""

    def __init__(self) -> None:
        key = ApiKey("00000000", Role.ADMIN, "", digest_secret(SECRET), "2026-12-03")
        self._keys = {key.digest: key}
        self.requested: list[str] = []

    def __getitem__(self, name: str) -> ApiKey:
        self.requested.append(name)
        return self._keys[name]

    def __iter__(self) -> Iterator[str]:
        self.requested.extend(self._keys)
        return iter(self._keys)

    def __len__(self) -> int:
        return len(self._keys)


def letter_by_letter(keys: RecordedLookups, secret: str) -> object:
    """Look for a key as nobody should: compare with each, until one letter differs."""
    return next((keys[name] for name in keys if name == secret), None)


def is_by_hash(prepare: Callable[[RecordedLookups], Callable[[str], object]]) -> bool:
    """Whether each of the guesses is looked up once, by a hash of its own."""
    keys = RecordedLookups()
    find = prepare(keys)
    keys.requested.clear()
    for guess in GUESSES:
        find(guess)
    return len(keys.requested) == len(set(keys.requested)) == len(GUESSES) and all(
        len(each) == 64 and SECRET not in each for each in keys.requested
    )


def test_a_key_is_looked_for_by_its_hash_alone() -> None:
    keys = ApiKeys(RecordedLookups())

    assert [keys.find(guess) is not None for guess in GUESSES] == [True] + [False] * 6
    assert is_by_hash(lambda keys: ApiKeys(keys).find)
    assert not is_by_hash(lambda keys: keys.get)  # the planted faults
    assert not is_by_hash(lambda keys: partial(letter_by_letter, keys))


def test_no_hash_shares_a_beginning_with_that_of_a_near_guess() -> None:
    """Of 2,000 keys that differ in one letter, none shares more letters than strangers do."""
    right = digest_secret(SECRET)
    near = [digest_secret(SECRET[:-1] + chr(code)) for code in range(0x4E00, 0x4E00 + 2_000)]

    # one of 2,000 shares 8 with a chance of 2,000 / 16^8
    assert not any(each.startswith(right[:8]) for each in near)
