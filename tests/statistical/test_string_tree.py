"""Strings found without candidates: letter by letter, from reports of their beginnings."""

from __future__ import annotations

from collections import Counter
from datetime import date
from fractions import Fraction
from functools import cache
from string import ascii_lowercase

import numpy as np
import pytest
from scipy.stats import poisson

from veilcount_analysis.estimation.confidence_intervals import Counts
from veilcount_analysis.estimation.letter_model import END, LETTERS, LetterModel
from veilcount_analysis.estimation.string_tree import Beginnings
from veilcount_analysis.mechanisms.candidate_search import discovered, open_handler
from veilcount_analysis.scipy_modules import special
from veilcount_shared.collection import Collection
from veilcount_shared.domain import OpenStrings
from veilcount_shared.periods import Unit

DOMAIN = OpenStrings("acme/word", 16, (2, 4, 6, 7))
ALPHA = 1e-6
WORD = Collection(
    app="acme",
    name="word",
    question="Which word?",
    domain=DOMAIN,
    unit=Unit.USER,
    start=date(2026, 11, 1),
    until=date(2027, 11, 1),
    epsilon=Fraction(4),
)
HELD = {"walk": 5000, "walking": 4000, "ride": 3000, "bus 42": 2500, "to-do": 2000}
N = 40_000


@cache
def reported(seed: int, held: tuple[tuple[str, int], ...] = tuple(HELD.items())) -> Counts:
    """The counters of n devices: these strings, and for the rest one string each."""
    generator, handler = np.random.default_rng(seed), open_handler(WORD)
    drawn = np.random.default_rng(0).choice(list(ascii_lowercase), (N, 6))
    rare = [("".join(row), 1) for row in drawn[sum(number for _, number in held) :]]
    texts, devices = zip(*held, *rare, strict=True)
    places = np.array([DOMAIN.buckets(text) for text in texts], object)
    parts = generator.multinomial(np.array(devices), [1 / DOMAIN.parts] * DOMAIN.parts)
    counts = np.zeros((DOMAIN.parts, WORD.mechanism.inputs // DOMAIN.parts), np.int64)
    for part, row in enumerate(counts):
        shift = (DOMAIN.parts - 1 - part) * DOMAIN.bucket_bits
        buckets = (places >> shift & (1 << DOMAIN.bucket_bits) - 1).astype(np.int64)
        np.add.at(row, buckets, parts[:, part])
    return handler.draw_counters(counts.ravel(), generator)


def found(seed: int, dictionary: tuple[str, ...] = ()) -> tuple[str, ...]:
    return tuple(discovered(WORD, reported(seed), dictionary, 0.25).texts)


def test_frequent_strings_are_found_the_most_frequent_first_and_few_that_nobody_has() -> None:
    """A string that begins another is found too; a quarter of one a round may be chance."""
    rounds = [found(seed) for seed in range(6)]

    assert all(each[:5] == tuple(HELD) for each in rounds)
    assert sum(len(each) - 5 for each in rounds) <= poisson.isf(ALPHA, 6 * 0.25)


def test_a_dictionary_finds_rarer_strings_and_does_not_hide_others() -> None:
    """Of five strings just above noise, those it has are found more often; the rest still are."""
    held = tuple((text, 480) for text in ("apple", "banana", "cherry", "damson", "elder"))
    dictionary = ("apple", "banana", "orange", "lemon")

    def hits(known: tuple[str, ...]) -> Counter[str]:
        rounds = (discovered(WORD, reported(seed, held), known, 0.25) for seed in range(8))
        return Counter(text for strings in rounds for text in strings.texts)

    with_dictionary, without = hits(dictionary), hits(())
    assert sum(with_dictionary[text] - without[text] for text in dictionary[:2]) > 4
    assert any(with_dictionary[text] for text, _ in held[2:])


def test_bounds_that_ignore_how_many_beginnings_there_are_find_strings_nobody_has(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(special, "ndtri", lambda chances: np.full(chances.shape, -2.05))

    assert len(set(found(1)) - set(HELD)) > poisson.isf(ALPHA, 6 * 0.25)


def test_reports_of_strings_that_one_device_each_has_give_none() -> None:
    by_chance = [discovered(WORD, reported(seed, ()), (), 0.25).texts for seed in range(6)]

    assert sum(map(len, by_chance)) <= poisson.isf(ALPHA, 6 * 0.25)


# -- the letters -----------------------------------------------------------------------------------


def test_a_model_gives_every_letter_a_chance_and_likely_ones_a_larger_one() -> None:
    model = LetterModel(["walk", "walking", "talk"])

    after = dict(zip(LETTERS, model.next_letter("wal"), strict=True))

    assert sum(after.values()) == pytest.approx(1)
    assert after["k"] > 5 * after["x"] > 0
    assert LetterModel().next_letter("wal") == pytest.approx(np.full(len(LETTERS), 1 / 42))


def test_whole_strings_are_not_extended_and_the_likeliest_extensions_are_kept() -> None:
    begun = Beginnings(["", f"to{END}"], np.log([0.5, 0.5]))

    extended = begun.extended(2, LetterModel())

    letters = len(LETTERS) - 2  # a string neither begins nor ends with a space, and is not empty
    assert len(extended.texts) == 1 + letters * (letters + 2)
    assert extended.texts.count(f"to{END}") == 1
    assert END not in extended.texts
    assert np.exp(extended.likely).sum() == pytest.approx(1, rel=0.1)
    assert extended.likeliest(1).texts == [f"to{END}"]
