"""Tables of two questions: the exact privacy of a report, its cells, values, the definition."""

from __future__ import annotations

import copy
from collections import Counter
from fractions import Fraction
from functools import partial
from itertools import combinations, product

import pytest

from veilcount_client.recording.value_check import value_problem
from veilcount_client.testing import SeededRandomSource
from veilcount_shared.domain import Choice, Questions
from veilcount_shared.epsilon import exp_lower
from veilcount_shared.errors import DefinitionError
from veilcount_shared.mechanisms import PairTables, SubsetSelection, select_mechanism
from veilcount_shared.randomness import RandomSource

from ..enumeration import Distribution, enumerate_distribution, max_likelihood_ratio
from .definition_harness import parse_definition

ONE = Fraction(1)
EPSILONS = [Fraction(1, 10), ONE, Fraction(2), Fraction(8)]
SIZES = [(2, 3), (2, 2, 3), (3, 2, 2)]
LINES = 'questions = {theme = ["light", "dark"], walk = ["no", "yes"]}\ntables = true'


def answers(sizes: tuple[int, ...]) -> list[tuple[int, ...]]:
    """The answers to all questions, in the order of their inputs."""
    return list(product(*map(range, sizes)))


def distributions(mechanism: PairTables) -> list[Distribution]:
    whole = range(len(answers(mechanism.sizes)))
    return [enumerate_distribution(partial(mechanism.randomize, x)) for x in whole]


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("sizes", SIZES)
def test_a_report_keeps_epsilon_between_any_answers(
    sizes: tuple[int, ...], epsilon: Fraction
) -> None:
    """Every message is sent, every pair with the same probability, and e^epsilon is not passed."""
    mechanism = PairTables.for_epsilon(epsilon, sizes)
    found = distributions(mechanism)

    assert mechanism.epsilon == epsilon
    assert all(sum(row.values()) == 1 for row in found)
    assert all(len(row) == mechanism.messages for row in found)
    assert 1 < max_likelihood_ratio(found) <= exp_lower(epsilon)


@pytest.mark.parametrize("sizes", SIZES)
def test_within_a_pair_a_message_is_that_of_the_cell_in_subset_selection(
    sizes: tuple[int, ...],
) -> None:
    """The pair is the first byte; the cell is row by row, the first question's answer the row."""
    mechanism = PairTables.for_epsilon(ONE, sizes)
    pairs = list(combinations(range(len(sizes)), 2))
    for chosen, row in zip(answers(sizes), distributions(mechanism), strict=True):
        expected: Distribution = {}
        for pair, (one, two) in enumerate(pairs):
            subset = select_mechanism(sizes[one] * sizes[two], ONE).mechanism
            cell = chosen[one] * sizes[two] + chosen[two]
            own = enumerate_distribution(partial(subset.randomize, cell))
            expected |= {
                pair << 8 * mechanism.width | message: chance / len(pairs)
                for message, chance in own.items()
            }
        assert row == expected


@pytest.mark.parametrize("sizes", SIZES)
def test_the_server_debiases_with_the_probabilities_of_each_pair(sizes: tuple[int, ...]) -> None:
    mechanism = PairTables.for_epsilon(ONE, sizes)
    for x, row in enumerate(distributions(mechanism)):
        for y in range(len(answers(sizes))):
            supported = Counter[int]()
            for message, chance in row.items():
                supported[message >> 8 * mechanism.width] += (  # type: ignore[assignment] # a Fraction
                    chance * mechanism.supports(message, y)
                )
            for pair, subset in enumerate(mechanism.subsets):
                same = mechanism.cell(x, pair) == mechanism.cell(y, pair)
                stated = subset.P if same else subset.Q
                assert supported[pair] * len(mechanism.subsets) == stated


@pytest.mark.parametrize("sizes", [(2, 3), (2, 2, 3), (2, 3, 20)])
def test_exactly_what_can_be_sent_is_valid(sizes: tuple[int, ...]) -> None:
    mechanism = PairTables.for_epsilon(ONE, sizes)
    randomness = SeededRandomSource(1)
    if mechanism.bits <= 16:
        valid = set(filter(mechanism.valid, range(1 << mechanism.bits)))
        assert valid == set(distributions(mechanism)[0])
    for _ in range(200):
        message = mechanism.randomize(0, randomness)
        assert mechanism.valid(message)
        assert not mechanism.valid(message + (len(mechanism.pairs) << 8 * mechanism.width))
        assert not mechanism.valid(-message - 1)


# -- planted faults --------------------------------------------------------------------------------


class Curious(PairTables):
    """A mistake: who gave the last answer to the first question reports on the first pair."""

    def randomize(self, x: int, randomness: RandomSource) -> int:
        pair = 0 if self._digit(x, 0) else randomness.below(len(self.pairs))
        return self._numbered(pair, self.subsets[pair].randomize(self.cell(x, pair), randomness))


class Twice(PairTables):
    """A mistake: the two answers by themselves, with the whole epsilon for each."""

    def randomize(self, x: int, randomness: RandomSource) -> int:
        pair = randomness.below(len(self.pairs))
        sizes = [self.sizes[question] for question in self.pairs[pair]]
        one, two = (
            SubsetSelection.for_epsilon(self.epsilon, size, 1).randomize(digit, randomness)
            for size, digit in zip(sizes, divmod(self.cell(x, pair), sizes[1]), strict=True)
        )
        return self._numbered(pair, one * sizes[1] + two)


def test_a_pair_that_depends_on_the_answers_is_caught() -> None:
    with pytest.raises(AssertionError, match="a message of its own"):
        max_likelihood_ratio(distributions(Curious.for_epsilon(ONE, (2, 2, 2))))


def test_two_answers_with_the_whole_epsilon_each_are_caught() -> None:
    wrong = distributions(Twice.for_epsilon(ONE, (2, 2, 2)))

    assert max_likelihood_ratio(wrong) > exp_lower(ONE)


def test_one_more_in_the_threshold_is_caught() -> None:
    subset = copy.copy(SubsetSelection.for_epsilon(ONE, 4, 1))
    object.__setattr__(subset, "a", subset.a + 1)
    wrong = PairTables((2, 2), (subset,))

    assert max_likelihood_ratio(distributions(wrong)) > exp_lower(ONE)


@pytest.mark.parametrize(
    ("subsets", "fix"),
    [
        ([(4, ONE), (6, ONE)], "for each pair"),
        ([(4, ONE), (6, ONE), (9, ONE)], "for each pair"),
        ([(4, ONE), (6, ONE), (6, Fraction(2))], "the same epsilon"),
    ],
)
def test_tables_of_other_pairs_are_refused(subsets: list[tuple[int, Fraction]], fix: str) -> None:
    wrong = tuple(SubsetSelection.for_epsilon(epsilon, k, 1) for k, epsilon in subsets)
    with pytest.raises(ValueError, match=fix):
        PairTables((2, 2, 3), wrong)


# -- values ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "possible"),
    [
        ({"theme": "dark", "walk": "yes"}, {3}),
        ({"theme": "dark", "walk": "yes", "more": 3}, {3}),
        ({"theme": "dark"}, {2, 3}),
        ({"theme": "dark", "walk": "now and then"}, {2, 3}),
        ({"theme": 1, "walk": "no"}, {0, 2}),
        (("dark", "yes"), {0, 1, 2, 3}),
        (None, {0, 1, 2, 3}),
    ],
)
def test_what_is_not_listed_is_drawn_evenly_and_a_developer_gets_an_error(
    value: object, possible: set[int]
) -> None:
    collection = parse_definition(LINES)
    found = enumerate_distribution(partial(collection.domain.input, value))
    problem = value_problem(collection, value, closest=True)

    assert found == {x: Fraction(1, len(possible)) for x in possible}
    assert (problem is None) == (len(possible) == 1)


def test_an_error_names_the_answer_that_comes_closest() -> None:
    collection = parse_definition(LINES)
    problem = value_problem(collection, {"theme": "Dark", "walk": "no"}, closest=True)

    assert problem is not None
    assert "dark" in problem


def test_a_person_reads_both_answers_that_a_report_may_stand_for() -> None:
    collection = parse_definition(LINES.replace("walk", "a") + "\nepsilon = 4")
    message = collection.randomizer.randomize(0, SeededRandomSource(1))

    assert collection.describe_message(collection.pack(message)) == "a no and theme light"


# -- the definition --------------------------------------------------------------------------------


def test_questions_are_in_the_order_of_their_names() -> None:
    turned = 'questions = {walk = ["no", "yes"], theme = ["light", "dark"]}\ntables = true'

    assert parse_definition(LINES).fingerprint == parse_definition(turned).fingerprint


@pytest.mark.parametrize(
    ("lines", "key", "fix"),
    [
        (LINES.partition("\n")[0], "tables", "name the questions in a [group] instead"),
        (LINES.replace("true", "false"), "tables", "write tables = true"),
        ("boolean = true\ntables = true", "tables", "only for questions"),
        ("questions = {a = [1, 2]}\ntables = true", "questions", "2 to 10"),
        ("questions = {}\ntables = true", "questions", "give a table"),
        ("questions = {a = [1, 2], b = [1]}\ntables = true", "questions.b", "at least two"),
        ("questions = {a = [1, 2], b = 3}\ntables = true", "questions.b", "give a list"),
        (
            f"questions = {{a = {list(range(17))}, b = {list(range(16))}}}\ntables = true",
            "questions",
            "at most 256 cells",
        ),
        (
            "questions = {" + ", ".join(f"q{n} = [1, 2]" for n in range(11)) + "}\ntables = true",
            "questions",
            "2 to 10",
        ),
        (f"{LINES}\nboolean = true", "values", "exactly one"),
        (f'{LINES}\nmeasure = "mean"', "measure", "no measure"),
        (f'{LINES}\npresence = "hidden"', "presence", "use values"),
        (f'{LINES}\nother = "x"', "other", "remove it"),
        (f'{LINES}\ntakes = "any"', "takes", ""),
        ('questions = {"a b" = [1, 2], c = [1, 2]}\ntables = true', "questions", "letters"),
    ],
)
def test_a_wrong_definition_of_questions_is_refused(lines: str, key: str, fix: str) -> None:
    with pytest.raises(DefinitionError) as refused:
        parse_definition(lines)

    assert refused.value.key == key
    assert fix in refused.value.fix


def test_a_domain_made_by_hand_is_checked_as_well() -> None:
    either = Choice((1, 2), "other")
    with pytest.raises(DefinitionError, match="has no other"):
        Questions((("a", Choice((1, 2))), ("b", either)))
    with pytest.raises(DefinitionError, match="in the order of the names"):
        Questions((("b", Choice((1, 2))), ("a", Choice((1, 2)))))
