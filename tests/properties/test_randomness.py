"""Random draws are exact, and no word is used twice: not by a thread, not by a fork."""

from __future__ import annotations

import os
import struct
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from math import comb, factorial
from threading import Barrier

import pytest
from hypothesis import given
from hypothesis import strategies as st

from veilcount_client.testing import SeededRandomSource
from veilcount_shared import randomness as randomness_module
from veilcount_shared.randomness import WORD_BITS, WORDS, RandomSource, SystemRandomSource

from ..enumeration import enumerate_distribution


class Words(RandomSource):
    """Serves the given words, in order."""

    __slots__ = ("_words", "taken")

    def __init__(self, words: Iterable[int]) -> None:
        self._words: Iterator[int] = iter(words)
        self.taken = 0

    def word(self) -> int:
        self.taken += 1
        return next(self._words)


# -- exactness -------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", range(1, 71))
def test_below_is_exactly_uniform(n: int) -> None:
    """Each value has one pattern of top bits; every other pattern is thrown away, whole."""
    bits = (n - 1).bit_length()
    low = (1 << WORD_BITS - bits) - 1
    served: Counter[int] = Counter()
    for pattern in range(1 << bits):
        for rest in {0, low, low // 3}:
            randomness = Words([pattern << WORD_BITS - bits | rest, 0])
            drawn = randomness.below(n)

            assert randomness.taken == (bits > 0) + (pattern >= n)
            if pattern < n:
                served[drawn] += 1

    assert set(served) == set(range(n))
    assert len(set(served.values())) == 1


@pytest.mark.parametrize("n", range(1, 71))
def test_below_is_exactly_uniform_over_several_short_words(
    n: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same code with words of 4 bits: all streams of 2 words, values above 16 included."""
    monkeypatch.setattr(randomness_module, "WORD_BITS", 4)
    served: Counter[int] = Counter()
    for stream in range(256):
        randomness = Words([stream >> 4, stream & 15, 0, 0])
        drawn = randomness.below(n)
        rejected = randomness.taken > -(-(n - 1).bit_length() // 4)
        if not rejected:
            served[drawn] += 1

    assert set(served) == set(range(n))
    assert len(set(served.values())) == 1


@pytest.mark.parametrize("n", [WORDS + 1, (1 << 70) - 3, 1 << 128, (1 << 128) + 1])
def test_below_takes_whole_words_where_one_is_too_short(n: int) -> None:
    bits = (n - 1).bit_length()
    words = -(-bits // WORD_BITS)

    def stream(value: int) -> list[int]:
        spread = value << words * WORD_BITS - bits
        return [spread >> WORD_BITS * place & WORDS - 1 for place in reversed(range(words))]

    for value in (0, 1, n // 3, n - 2, n - 1):
        randomness = Words(stream(value))

        assert randomness.below(n) == value
        assert randomness.taken == words
    if n < 1 << bits:
        assert Words(stream(n) + stream(7)).below(n) == 7


@given(st.integers(0, WORDS), st.integers(0, WORDS - 1))
def test_bernoulli_compares_one_word_with_its_threshold(a: int, word: int) -> None:
    for served in {word, a - 1, a} - {-1, WORDS}:
        randomness = Words([served])

        assert randomness.bernoulli(a) == (served < a)
        assert randomness.taken == 1


@pytest.mark.parametrize("denominator", [1, 2, 3, 7, 10, 16, 31])
def test_bernoulli_is_exact_for_any_ratio(
    denominator: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the streams that are not thrown away, exactly num in den fall True."""
    monkeypatch.setattr(randomness_module, "WORD_BITS", 4)
    needed = -(-(denominator - 1).bit_length() // 4)
    for numerator in range(denominator + 1):
        fallen: Counter[bool] = Counter()
        for stream in range(256):
            randomness = Words([stream >> 4, stream & 15, 0, 0])
            heads = randomness.bernoulli(numerator, denominator)
            if randomness.taken == needed:
                fallen[heads] += 1

        assert fallen.total() >= 128, "most streams are long enough"
        assert fallen[True] * denominator == fallen.total() * numerator


@pytest.mark.parametrize(("n", "value"), [(3, 2), (5, 4), (200, 199), (WORDS - 5, WORDS - 7)])
def test_after_a_rejection_the_top_bits_of_the_next_word_are_used(n: int, value: int) -> None:
    """The top bits of the next word, not the bottom ones; of two rejected, the third."""
    shift = WORD_BITS - (n - 1).bit_length()
    randomness = Words([WORDS - 1, n << shift, value << shift])

    assert randomness.below(n) == value
    assert randomness.taken == 3


def test_only_seeded_randomness_repeats_and_it_differs_by_seed() -> None:
    one, same, other = SeededRandomSource(1), SeededRandomSource(1), SeededRandomSource(2)
    words = [one.word() for _ in range(100)]

    assert words == [same.word() for _ in range(100)]
    assert words != [other.word() for _ in range(100)]
    assert all(0 <= word < WORDS for word in words)
    assert (one.predictable, SystemRandomSource().predictable) == (True, False)


class Pooled(SystemRandomSource):
    """The system's source with words that a test knows."""

    __slots__ = ()

    def __init__(self, words: list[int]) -> None:
        super().__init__()
        self._pool = words[::-1]


@given(
    st.lists(st.integers(2, WORDS), min_size=1, max_size=8),
    st.lists(st.integers(0, WORDS - 1) | st.just(WORDS - 1), min_size=64, max_size=64),
)
def test_draws_are_those_of_below_one_after_the_other(bounds: list[int], words: list[int]) -> None:
    enough = [*words, *[0] * len(bounds)]
    pooled, one_by_one = Pooled(enough), Words(enough)

    assert pooled.draws(bounds) == [one_by_one.below(n) for n in bounds]
    assert len(enough) - len(pooled._pool) == one_by_one.taken


# -- nothing is served twice -----------------------------------------------------------------------

POOL = SystemRandomSource._POOL_WORDS
MANY = POOL + POOL // 2  # beyond what a pool holds
needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
# Python 3.12 on warns of forks in a threaded process, such as a worker of pytest-xdist.
may_fork = pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")


class Keeping(SystemRandomSource):
    """The planted bug: a child keeps the pool it inherited."""

    __slots__ = ()

    def drop(self) -> None:
        self._pid = os.getpid()


def words_of_a_child(randomness: RandomSource) -> list[int]:
    """What a forked child draws, brought back through a pipe."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        with os.fdopen(writing, "wb") as out:
            out.write(b"".join(randomness.word().to_bytes(8, "big") for _ in range(MANY)))
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        packed = pipe.read()
    assert os.waitpid(child, 0)[1] == 0
    return [int.from_bytes(packed[at : at + 8], "big") for at in range(0, len(packed), 8)]


def words_of_a_family(randomness: RandomSource) -> list[int]:
    """What a parent and its four children draw, from a pool that was half used at the fork."""
    drawn = [randomness.word() for _ in range(POOL // 2)]
    for _ in range(4):
        drawn += words_of_a_child(randomness)
    return drawn + [randomness.word() for _ in range(MANY)]


@needs_fork
@may_fork
def test_no_forked_child_shares_a_word_with_its_parent_or_siblings() -> None:
    drawn, kept = words_of_a_family(SystemRandomSource()), words_of_a_family(Keeping())

    assert len(set(drawn)) == len(drawn) == POOL // 2 + 5 * MANY
    assert len(set(kept)) < len(kept), "a child that keeps the pool is caught"


@needs_fork
@may_fork
def test_the_pool_is_dropped_in_the_child_before_anyone_draws() -> None:
    """The hook runs at the fork: an inherited word does not even stay in the child's memory."""
    randomness = SystemRandomSource()
    randomness.word()
    child = os.fork()
    if not child:
        os._exit(len(randomness._pool) > 0)

    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert len(randomness._pool) == POOL - 1


def by_word(randomness: RandomSource) -> int:
    return randomness.word()


def by_draws(randomness: RandomSource) -> int:
    (word,) = randomness.draws([WORDS])
    return word


Draw = Callable[[RandomSource], int]
every_way = pytest.mark.parametrize("draw_word", [by_word, by_draws])


def after_a_silent_fork(
    randomness: SystemRandomSource, draw_word: Draw
) -> tuple[set[int], set[int]]:
    """What was pooled before a fork that ran none of Python's hooks, and what is drawn after it."""
    randomness.word()
    inherited = set(randomness._pool)
    randomness._pid -= 1  # as a child of a C host finds it: not the pid of its parent
    return inherited, {draw_word(randomness) for _ in range(MANY)}


@every_way
def test_a_fork_without_pythons_hooks_is_noticed_by_its_pid(draw_word: Draw) -> None:
    inherited, drawn = after_a_silent_fork(SystemRandomSource(), draw_word)
    kept, reused = after_a_silent_fork(Keeping(), draw_word)

    assert len(inherited) == POOL - 1
    assert not inherited & drawn
    assert kept & reused, "a pool kept through a silent fork is caught"


@every_way
def test_eight_threads_share_no_word(draw_word: Draw) -> None:
    randomness, ready = SystemRandomSource(), Barrier(8)

    def draw(_: int) -> list[int]:
        ready.wait()
        return [draw_word(randomness) for _ in range(10_000)]

    with ThreadPoolExecutor(8) as pool:
        drawn = [word for words in pool.map(draw, range(8)) for word in words]

    assert len(set(drawn)) == 8 * 10_000


def count_entropy(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Replace the operating system's bytes by counted words; return those handed out so far."""
    handed: list[int] = []

    def urandom(size: int) -> bytes:
        words = range(len(handed), len(handed) + size // 8)
        handed.extend(words)
        return struct.pack(f"={len(words)}Q", *words)

    monkeypatch.setattr(os, "urandom", urandom)
    return handed


def test_every_word_of_the_system_is_served_at_most_once(monkeypatch: pytest.MonkeyPatch) -> None:
    handed = count_entropy(monkeypatch)
    randomness = SystemRandomSource()
    assert not handed, "nothing is drawn before it is needed"
    served = [randomness.word() for _ in range(5 * POOL + 7)]

    assert len(handed) == 6 * POOL
    assert sorted(served + randomness._pool) == handed


@pytest.mark.parametrize(("n", "size"), [(5, 0), (5, 2), (5, 5), (6, 3)])
def test_a_sample_is_every_subset_of_its_size_alike(n: int, size: int) -> None:
    subsets = enumerate_distribution(lambda randomness: frozenset(randomness.sample(n, size)))

    assert set(subsets.values()) == {Fraction(1, comb(n, size))}
    assert {len(subset) for subset in subsets} == {size}


@pytest.mark.parametrize("items", ["", "a", "abc", "abcd"])
def test_a_shuffle_is_every_order_alike(items: str) -> None:
    orders = enumerate_distribution(lambda randomness: "".join(randomness.shuffled(items)))

    assert set(orders.values()) == {Fraction(1, factorial(len(items)))}
