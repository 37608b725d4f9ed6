"""Open strings: their buckets, the exact privacy of a report, and their definition."""

from __future__ import annotations

import copy
from fractions import Fraction
from functools import partial
from itertools import product

import pytest

from veilcount_client.recording.value_check import value_problem
from veilcount_client.testing import SeededRandomSource
from veilcount_shared import parse_collections
from veilcount_shared.collection import lint
from veilcount_shared.domain import OpenStrings, normalized
from veilcount_shared.epsilon import exp_lower
from veilcount_shared.errors import DefinitionError
from veilcount_shared.mechanisms import HashedStrings, ProjectiveGeometry
from veilcount_shared.randomness import RandomSource

from ..enumeration import Distribution, enumerate_distribution, max_likelihood_ratio
from ..vectors.vector_files import read
from .definition_harness import no_values_file, parse_definition

ONE = Fraction(1)
EPSILONS = [Fraction(1, 10), ONE, Fraction(3)]
BITS = 2  # of a bucket: 4 buckets in each half, and 16 pairs
OPEN = 'values = "open"'


def distributions(mechanism: HashedStrings) -> list[Distribution]:
    """The distribution of every pair of buckets, over all outcomes of the randomness."""
    return [enumerate_distribution(partial(mechanism.randomize, pair)) for pair in range(4**BITS)]


# -- exact privacy ---------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_a_report_keeps_epsilon_between_any_two_strings(epsilon: Fraction) -> None:
    """Each half has half of the probability, whatever the string; within it the geometry's own."""
    mechanism = HashedStrings.for_epsilon(epsilon, BITS, 2)
    found = distributions(mechanism)
    half = mechanism.geometry.messages

    assert all(sum(each.values()) == 1 for each in found)
    assert all(set(each) == set(range(mechanism.messages)) for each in found)
    assert all(sum(each[m] for m in range(half)) == Fraction(1, 2) for each in found)
    assert (mechanism.epsilon, mechanism.inputs) == (epsilon, 8)
    assert "one of 2 buckets" in mechanism.describe()
    assert 1 < max_likelihood_ratio(found) <= exp_lower(epsilon)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_a_string_is_supported_with_P_and_over_all_hashes_any_other_with_Q(
    epsilon: Fraction,
) -> None:
    """Another string's pair of buckets is uniform: it may share none, one or both of them."""
    mechanism = HashedStrings.for_epsilon(epsilon, BITS, 2)
    own, pairs = 6, range(4**BITS)
    [found] = [enumerate_distribution(partial(mechanism.randomize, own))]

    def supported(pair: int) -> Fraction:
        return sum((p for m, p in found.items() if mechanism.supports(m, pair)), Fraction(0))

    assert supported(own) == mechanism.P
    assert sum(map(supported, pairs)) / len(pairs) == mechanism.Q


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_a_report_of_a_beginning_keeps_epsilon(epsilon: Fraction) -> None:
    """Three parts, each with a bucket of its own."""
    mechanism = HashedStrings.for_epsilon(epsilon, BITS, 3)
    inputs = (0, 1, 6, 27, 36, 63)
    found = [enumerate_distribution(partial(mechanism.randomize, x)) for x in inputs]

    assert all(set(each) == set(range(mechanism.messages)) for each in found)
    assert 1 < max_likelihood_ratio(found) <= exp_lower(epsilon)
    assert [mechanism.bucket(27, part) for part in range(3)] == [1, 2, 3]


def test_one_more_in_the_threshold_is_caught() -> None:
    geometry = copy.copy(HashedStrings.for_epsilon(ONE, BITS, 2).geometry)
    object.__setattr__(geometry, "a", geometry.a + 1)

    assert max_likelihood_ratio(distributions(HashedStrings(geometry, 2))) > exp_lower(ONE)


class Curious(HashedStrings):
    """A mistake: the half is the first bucket's parity, which tells it for certain."""

    def randomize(self, x: int, randomness: RandomSource) -> int:
        half = self.bucket(x, 0) % 2
        bucket = self.bucket(x, half)
        return half * self.geometry.messages + self.geometry.randomize(bucket, randomness)


def test_a_half_that_depends_on_the_string_is_caught() -> None:
    curious = Curious(HashedStrings.for_epsilon(ONE, BITS, 2).geometry, 2)

    with pytest.raises(AssertionError, match="a message of its own"):
        max_likelihood_ratio(distributions(curious))


def test_buckets_that_are_no_power_of_two_are_refused() -> None:
    with pytest.raises(ValueError, match="power of two"):
        HashedStrings(ProjectiveGeometry.for_epsilon(ONE, 5, 2, 3), 2)
    with pytest.raises(ValueError, match="power of two"):
        HashedStrings(ProjectiveGeometry.for_epsilon(ONE, 6, 2, 3), 2)


# -- strings and their buckets ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("walk", "walk"),
        ("  cafe\u0301\n", "caf\u00e9"),
        ("x" * 201, None),
        ("a\u200bb", None),
        (7, None),
        (None, None),
        (b"walk", None),
    ],
)
def test_a_string_is_normalized_and_what_is_none_is_drawn(value: object, text: str | None) -> None:
    """The draw is uniform over all pairs; a developer gets an error without the value."""
    domain, collection = OpenStrings("acme"), parse_definition(OPEN)

    assert normalized(value) == text
    if text is not None:
        assert domain.input(value, SeededRandomSource(1)) == domain.buckets(text)
        assert value_problem(collection, value, closest=True) is None
    else:
        drawn = {domain.input(value, SeededRandomSource(seed)) for seed in range(50)}
        assert len(drawn) == 50
        assert max(drawn) < domain.size
        assert "1 to 200 visible characters" in str(value_problem(collection, value, closest=True))


def test_strings_share_a_bucket_by_chance_alone_and_in_one_half() -> None:
    """Of 3,000 strings in 1,024 buckets a half; another salt is another hash."""
    one, two = OpenStrings("one", 10), OpenStrings("two", 10)
    texts = [f"string {number}" for number in range(3000)]
    pairs = [one.buckets(text) for text in texts]
    counts = [0] * 1024
    for pair in pairs:
        counts[pair >> 10] += 1
    chi = sum((count - 3000 / 1024) ** 2 for count in counts) / (3000 / 1024)

    assert abs(chi - 1023) < 5 * (2 * 1023) ** 0.5
    assert sum(a == two.buckets(text) for a, text in zip(pairs, texts, strict=True)) < 3
    shared = [
        (x, y) for x, y in product(range(60), range(60, 3000)) if pairs[x] >> 10 == pairs[y] >> 10
    ]
    assert sum(pairs[x] == pairs[y] for x, y in shared) < len(shared) / 50


def test_a_beginning_has_a_bucket_in_each_part_and_letters_no_case() -> None:
    """Strings that begin alike share the buckets of their beginning, and no others."""
    domain = OpenStrings("acme", 18, (3, 5, 10))
    one, two, three = (domain.buckets(text) for text in ("walking far", "Walkman", "WALKING FA"))

    assert one >> 36 == two >> 36
    assert one >> 18 != two >> 18
    assert one == three
    assert max(one, two) < domain.size
    assert domain.labels == ()
    assert domain.size == 1 << 54
    assert domain.digest("walking far", 10) == domain.digest("walking fast", 10)


# -- the definition --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lines", "key", "fix"),
    [
        (f'{OPEN}\nother = "rest"', "other", "not listed"),
        (f'{OPEN}\ncross = {{plan = ["a", "b"]}}', "cross", "not listed"),
        (f"{OPEN}\nboolean = true", "boolean", "not listed"),
        (f'{OPEN}\nmeasure = "mean"', "measure", "only for a range"),
        (f'{OPEN}\npresence = "hidden"', "presence", "list the values"),
        (f'{OPEN}\ntakes = "max"\nheld = "device"', "takes", "first"),
        ('values = "opened"', "values", "give a list"),
        (f"{OPEN}\ndiscover = 1", "discover", "discover = true"),
        ("boolean = true\ndiscover = true", "discover", 'only for values = "open"'),
    ],
)
def test_what_open_strings_cannot_have_is_refused(lines: str, key: str, fix: str) -> None:
    with pytest.raises(DefinitionError) as refused:
        parse_definition(lines)

    assert refused.value.key == key
    assert fix in refused.value.fix


def test_few_answers_bring_the_share_from_which_a_string_is_found() -> None:
    [remark] = [each for each in lint(parse_definition(OPEN), 100_000) if "found" in each.text]

    assert "from a share of about" in remark.text


# -- a curator's -----------------------------------------------------------------------------------

CURATED = "".join(read("central_strings.json")["definition"])


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ("", r"delta = .missing.: a curator releases open strings above a threshold"),
        ("delta = 0.000001\ndiscover = true", "discover = true: a curator's open strings"),
    ],
)
def test_what_a_curator_of_open_strings_needs(keys: str, message: str) -> None:
    with pytest.raises(DefinitionError, match=message):
        parse_collections(f"{CURATED}\n{keys}".replace("delta = 0.000001", "", 1), no_values_file)
