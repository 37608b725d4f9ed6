"""Several values of one person: the exact distribution of a report, its input, the definition."""

from __future__ import annotations

import copy
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import combinations

import pytest

from veilcount_analysis.audit.audit_case import report_case
from veilcount_client.recording.value_check import value_problem
from veilcount_client.testing import SeededRandomSource
from veilcount_shared.domain import Choice, Several
from veilcount_shared.epsilon import exp_lower
from veilcount_shared.errors import DefinitionError, EpsilonError
from veilcount_shared.mechanisms import DrawnBit, SetSelection
from veilcount_shared.mechanisms.set_selection import best_size
from veilcount_shared.randomness import RandomSource

from ..enumeration import Distribution, enumerate_distribution, max_likelihood_ratio
from .definition_harness import parse_definition
from .hostile_values import ODD

ONE = Fraction(1)
EPSILONS = [Fraction(1, 10), ONE, Fraction(2), Fraction(8)]
SHAPES = [(4, 2, 2), (3, 2, 1), (5, 3, 2), (5, 2, 3), (7, 2, 2)]  # the last packs its members
LETTERS = ("a", "b", "c", "d")
LINES = 'values = ["a", "b", "c", "d"]\nchoose = "several"\n'
HIDDEN = 'presence = "hidden"\n'
ROUNDS = 4000


def masks(k: int, most: int) -> list[int]:
    """The inputs: every set of at most so many values; of five values or more some."""
    every = [mask for mask in range(1 << k) if mask.bit_count() <= most]
    return every if k < 5 else [*every[:5], 3 << k - 2]


def distributions_of(mechanism: SetSelection | DrawnBit, inputs: list[int]) -> list[Distribution]:
    """The distribution of each input, by running `randomize` over every random outcome."""
    return [enumerate_distribution(partial(mechanism.randomize, x)) for x in inputs]


# -- set selection ---------------------------------------------------------------------------------


def check_set(mechanism: SetSelection) -> None:
    """Fail unless every input sends all messages, at exactly P, Q and within e^epsilon."""
    inputs = masks(mechanism.k, mechanism.most)
    distributions = distributions_of(mechanism, inputs)

    assert {len(row) for row in distributions} == {mechanism.messages}
    assert all(sum(row.values()) == 1 for row in distributions)
    assert all(mechanism.valid(message) for message in distributions[0])
    assert 1 < max_likelihood_ratio(distributions) <= exp_lower(mechanism.epsilon)
    for x, row in zip(inputs, distributions, strict=True):
        for value in range(mechanism.k):
            holding = sum(p for message, p in row.items() if value in mechanism.members(message))
            assert holding == (mechanism.P if x >> value & 1 else mechanism.Q)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_the_distribution_of_a_set_is_exact(shape: tuple[int, int, int], epsilon: Fraction) -> None:
    check_set(SetSelection.for_epsilon(epsilon, *shape))


def test_all_fifteen_messages_of_six_elements_have_one_of_two_probabilities() -> None:
    """4 values, 2 ticks, subsets of 2: 9 of 15 messages meet a set; the ratio is e^1, rounded."""
    mechanism = SetSelection.for_epsilon(ONE, 4, 2, 2)
    distributions = distributions_of(mechanism, masks(4, 2))
    ratio = max_likelihood_ratio(distributions)

    assert (mechanism.owned, mechanism.messages, len(distributions)) == (9, 15, 11)
    for row in distributions:
        assert sorted(Counter(row.values()).values()) == [6, 9]
    assert exp_lower(ONE) * (1 - Fraction(1, 1 << 60)) < ratio <= exp_lower(ONE)


@dataclass(frozen=True, slots=True)
class Unpadded(SetSelection):
    """A mistake: without fillers who ticks less has a smaller set."""

    def padded(self, x: int) -> tuple[int, ...]:
        """Return the ticked values, and the others as a last resort."""
        ticked = [value for value in range(self.k) if x >> value & 1]
        return (*ticked, *(value for value in range(self.k) if value not in ticked))[: self.most]


@dataclass(frozen=True, slots=True)
class Even(SetSelection):
    """A mistake: how many own elements a message has is drawn evenly."""

    def _draw_hits(self, randomness: RandomSource) -> int:
        return 1 + randomness.below(min(self.most, self.w))


@pytest.mark.parametrize("mistake", [Unpadded, Even])
def test_a_wrong_set_is_caught(mistake: type[SetSelection]) -> None:
    with pytest.raises(AssertionError):
        check_set(mistake.for_epsilon(ONE, 4, 2, 2))


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_a_threshold_one_too_high_is_refused_and_breaks_the_bound(epsilon: Fraction) -> None:
    mechanism = SetSelection.for_epsilon(epsilon, 5, 2)
    with pytest.raises(EpsilonError, match="exceeds it"):
        SetSelection(5, 2, mechanism.w, mechanism.a + 1, epsilon)
    wrong = copy.copy(mechanism)
    object.__setattr__(wrong, "a", mechanism.a + 1)

    assert max_likelihood_ratio(distributions_of(wrong, masks(5, 2))) > exp_lower(epsilon)


def test_a_subset_too_large_to_miss_every_set_is_refused() -> None:
    """Of such a subset no input is the least likely one, and a cover would not be uniform."""
    with pytest.raises(EpsilonError):
        SetSelection.for_epsilon(ONE, 5, 3, 3)


@pytest.mark.parametrize(
    ("epsilon", "k", "most", "w", "variance"),
    [
        (1, 12, 2, 2, 5.41), (1, 12, 3, 1, 6.49), (1, 12, 5, 1, 8.33), (4, 30, 3, 1, 0.067),
        (1, 30, 5, 2, 14.2), (1, 60, 2, 8, 7.31),
    ],
)  # fmt: skip
def test_the_size_of_subsets_has_the_least_variance(
    epsilon: int, k: int, most: int, w: int, variance: float
) -> None:
    """n Var of a value that nobody ticks; every other size has at least as much."""
    mechanism = SetSelection.for_epsilon(Fraction(epsilon), k, most)
    others = [SetSelection.for_epsilon(Fraction(epsilon), k, most, size) for size in range(1, 20)
              if size <= k - most]  # fmt: skip

    assert mechanism.w == best_size(k, most, exp_lower(Fraction(epsilon))) == w
    assert of_nobody(mechanism) == pytest.approx(variance, rel=2e-2)
    assert min(map(of_nobody, others)) >= of_nobody(mechanism) * (1 - 1e-12)


def of_nobody(mechanism: SetSelection | DrawnBit) -> float:
    """n times the variance of the share of a value that nobody ticks."""
    q = mechanism.Q
    return float(q * (1 - q) / (mechanism.P - q) ** 2)


# -- a drawn bit -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class OfPerson(DrawnBit):
    """A mistake: which value is drawn depends on what is ticked."""

    def randomize(self, x: int, randomness: RandomSource) -> int:
        """Return the bit of the first ticked value."""
        value = (x & -x).bit_length() - 1 if x else randomness.below(self.k)
        return 2 * value + randomness.bernoulli(self.a)


def check_bit(mechanism: DrawnBit) -> None:
    """Fail unless every value is drawn alike, and its bit sent as it is with probability a."""
    distributions = distributions_of(mechanism, list(range(mechanism.inputs)))
    for x, row in enumerate(distributions):
        for value in range(mechanism.k):
            own = x >> value & 1
            assert row[2 * value + own] == mechanism.bit / mechanism.k
            assert row[2 * value + 1 - own] == (1 - mechanism.bit) / mechanism.k
    assert 1 < max_likelihood_ratio(distributions) <= exp_lower(mechanism.epsilon)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_distribution_of_a_drawn_bit_is_exact(epsilon: Fraction) -> None:
    check_bit(DrawnBit.for_epsilon(epsilon, 4))


def test_a_bit_of_what_is_ticked_is_caught() -> None:
    with pytest.raises((AssertionError, KeyError)):
        check_bit(OfPerson.for_epsilon(ONE, 4))


# -- covers ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("shape", SHAPES[:3], ids=str)
def test_a_cover_has_what_all_inputs_have_in_common(
    shape: tuple[int, int, int], epsilon: Fraction
) -> None:
    """The least probability of each message over all inputs, to scale."""
    for mechanism in (
        SetSelection.for_epsilon(epsilon, *shape),
        DrawnBit.for_epsilon(epsilon, shape[0]),
    ):
        most = shape[1] if isinstance(mechanism, SetSelection) else shape[0]
        rows = distributions_of(
            mechanism, [x for x in range(1 << shape[0]) if x.bit_count() == most or not x]
        )
        least = {message: min(row[message] for row in rows) for message in rows[0]}
        whole = sum(least.values())
        blanket = {message: probability / whole for message, probability in least.items()}

        assert enumerate_distribution(mechanism.cover) == blanket


# -- from a value to a mask ------------------------------------------------------------------------


def test_ticks_are_a_mask_in_any_collection_and_order() -> None:
    domain, randomness = Several(Choice(LETTERS), 3), SeededRandomSource(1)

    for value in (["a", "c"], ("c", "a", "c"), {"a", "c"}, frozenset("ac")):
        assert domain.input(value, randomness) == 0b101
    assert domain.input([], randomness) == 0
    assert Several(Choice(LETTERS, "else"), 2).input(["x", "b"], randomness) == 0b10010


@pytest.mark.parametrize("most", [2, 3])
def test_of_more_ticks_each_part_is_drawn_alike(most: int) -> None:
    """Exactly: any `most` of the ticked values, all with one probability."""
    domain = Several(Choice(LETTERS), most)
    drawn = enumerate_distribution(partial(domain.input, list(LETTERS)))
    parts = [sum(1 << value for value in part) for part in combinations(range(4), most)]

    assert drawn == dict.fromkeys(parts, Fraction(1, len(parts)))


@pytest.mark.parametrize("most", [None, 2])
def test_any_value_becomes_an_input(most: int | None) -> None:
    """Also hostile ones, in a list and alone: a mask of at most so many values."""
    domain, randomness = Several(Choice(LETTERS), most), SeededRandomSource(2)
    for value in [*ODD, [*ODD], "a", {"a": 1}, [["a"]], range(3), [LETTERS[0]] * 5000]:
        mask = domain.input(value, randomness)

        assert 0 <= mask < 16
        assert mask.bit_count() <= (most or 4)


def test_a_developer_is_shown_what_a_device_would_draw() -> None:
    collection = parse_definition(LINES + "most = 2\nuntil = 2027-04-01")
    problem = partial(value_problem, collection, closest=True)

    assert problem(["a", "d"]) is problem([]) is problem({"b"}) is None
    assert "at most 2" in str(problem(["a", "b", "c"]))
    assert "no list or set" in str(problem("a"))
    assert "not listed" in str(problem(["a", "e"]))


# -- the definition --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lines", "key", "fix"),
    [
        (LINES + "most = 4", "most", "give 2 to 3"),
        (LINES + "most = 1", "most", "give 2 to 3"),
        (LINES + "most = true", "most", "whole number"),
        (LINES.replace("several", "two"), "choose", 'choose = "several"'),
        ('values = ["a", "b"]\nchoose = "several"\nmost = 2', "most", "two values"),
        ('values = ["a", "b"]\nmost = 2', "most", 'only with choose = "several"'),
        ('boolean = true\nchoose = "several"', "choose", "no meaning"),
        ('values = "open"\nchoose = "several"', "choose", "not listed"),
        (LINES + 'cross = {plan = ["free", "paid"]}', "cross", "not crossed"),
        (LINES + 'measure = "mean"', "measure", "have no measure"),
        (LINES + 'takes = "sum"', "takes", ""),
        (LINES + HIDDEN, "presence", "give most"),
        (f'values = {list(range(61))}\nchoose = "several"', "values", "at most 60"),
    ],
)
def test_what_does_not_suit_several_values_is_refused_with_the_fix(
    lines: str, key: str, fix: str
) -> None:
    with pytest.raises(DefinitionError) as refused:
        parse_definition(f"{lines}\nuntil = 2027-04-01")

    assert (refused.value.key, fix in str(refused.value.fix)) == (key, True)


def test_both_keys_are_fingerprinted() -> None:
    texts = ["", "most = 2", "most = 3"]
    several = [parse_definition(f"{LINES}{text}\nuntil = 2027-04-01") for text in texts]
    one = parse_definition(f"{LINES.splitlines()[0]}\nuntil = 2027-04-01")

    assert len({one.fingerprint, *(collection.fingerprint for collection in several)}) == 4
    assert [type(collection.mechanism) for collection in several] == [
        *(DrawnBit, SetSelection, SetSelection)
    ]


def test_absence_is_one_more_value_that_is_ticked_alone() -> None:
    """Its set has one size like any other, so that an absence is not visible."""
    collection = parse_definition(f"{LINES}most = 2\n{HIDDEN}until = 2027-04-01")
    mechanism, randomness = collection.mechanism, SeededRandomSource(3)

    assert isinstance(mechanism, SetSelection)
    assert (mechanism.k, collection.inputs) == (5, 17)
    assert len(mechanism.padded(16)) == len(mechanism.padded(0)) == 2
    absent = Counter(collection.randomize_absent(randomness) for _ in range(ROUNDS))
    support = sum(n for m, n in absent.items() if 4 in mechanism.members(m)) / ROUNDS
    assert support == pytest.approx(float(mechanism.P), abs=0.04)  # 5 deviations: 6e-7


# -- the audit -------------------------------------------------------------------------------------


@pytest.mark.parametrize("most", ["most = 2", ""])
def test_an_audit_finds_a_report_without_noise(most: str, monkeypatch: pytest.MonkeyPatch) -> None:
    collection = parse_definition(f"{LINES}{most}\nuntil = 2027-04-01")
    kind = type(collection.mechanism)

    def broken() -> bool:
        return report_case(collection, SeededRandomSource(5)).run(samples=4000, alpha=1e-6).broken

    assert not broken()
    monkeypatch.setattr(SeededRandomSource, "bernoulli", lambda *_: True)
    assert kind in {DrawnBit, SetSelection}
    assert broken()
