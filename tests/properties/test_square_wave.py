"""Square wave, mean and distribution: levels, windows, tables of values; true values."""

from __future__ import annotations

import json
from fractions import Fraction
from hashlib import sha256
from math import ceil, log2
from typing import Any

import pytest

from veilcount_shared.domain import GRID
from veilcount_shared.errors import EpsilonError
from veilcount_shared.mechanisms import (
    DistributionMechanism,
    Identity,
    MeanMechanism,
    ProjectiveGeometry,
    SquareWave,
    SubsetSelection,
)
from veilcount_shared.mechanisms.mean import TABLES
from veilcount_shared.mechanisms.square_wave import find_bucket

ONE = Fraction(1)


@pytest.mark.parametrize(
    "mechanism",
    [
        *(SquareWave.for_epsilon(ONE, count, 1) for count in (2, 3, 16, 17)),
        *(MeanMechanism.for_epsilon(ONE), DistributionMechanism.for_epsilon(ONE), Identity(7)),
    ],
)
def test_levels_are_valid_up_to_the_last_and_sent_in_the_fewest_bits(
    mechanism: SquareWave | MeanMechanism | DistributionMechanism | Identity,
) -> None:
    count = mechanism.messages

    assert mechanism.bits == ceil(log2(count))
    assert all(mechanism.valid(message) for message in range(count))
    assert not any(mechanism.valid(message) for message in (-1, count, count + 1, 1 << 64))


def test_a_true_value_is_its_own_message() -> None:
    assert [Identity(7).reveal(x) for x in range(7)] == list(range(7))
    assert not hasattr(Identity, "randomize")


WINDOW = "lies in the true value's window of {} of {} levels with probability {}"


@pytest.mark.parametrize(
    ("mechanism", "inputs", "text"),
    [
        (Identity(7), 7, "the true value itself, for a trusted curator"),
        (MeanMechanism.for_epsilon(ONE), 9, WINDOW.format(7, 15, "0.704010")),
        (DistributionMechanism.for_epsilon(ONE), 256, WINDOW.format(131, 386, "0.582716")),
        (
            SubsetSelection.for_epsilon(ONE, 5, 2),
            5,
            "holds the true value with probability 0.644405, any given other value with 0.338899",
        ),
    ],
)
def test_a_mechanism_describes_itself(mechanism: Any, inputs: int, text: str) -> None:
    assert (mechanism.inputs, mechanism.describe()) == (inputs, text)


def test_a_mechanism_of_numbers_has_the_epsilon_of_its_window() -> None:
    mechanism = MeanMechanism.for_epsilon(ONE)

    assert (mechanism.epsilon, mechanism.P) == (ONE, mechanism.window.P)


def test_the_message_of_a_subset_names_its_members() -> None:
    assert SubsetSelection.for_epsilon(ONE, 5, 2).describe_message(0b10010, "abcde") == "b or e"


@pytest.mark.parametrize(
    "make",
    [
        lambda a: SubsetSelection(5, 2, a, ONE),
        lambda a: ProjectiveGeometry(7, 2, 3, a, ONE),
        lambda a: SquareWave(13, 5, a, ONE),
    ],
    ids=["subset", "plane", "window"],
)
@pytest.mark.parametrize("a", [0, 1, (1 << 64) - 1, 1 << 64, -1])
def test_a_threshold_that_exceeds_epsilon_is_refused(make: Any, a: int) -> None:
    """Whoever built it, on whichever side."""
    with pytest.raises(EpsilonError, match=rf"a={a} exceeds it"):
        make(a)


#: epsilon, M, W, the worst variance, worked out apart from the product
MEANS = [
    *(("0.1", 16, 8, "400.0159"), ("0.5", 16, 8, "16.0134"), ("1", 15, 7, "4.0042")),
    *(("2", 13, 5, "0.8723"), ("4", 16, 4, "0.1306"), ("8", 16, 1, "0.0091")),
]


@pytest.mark.parametrize(("epsilon", "levels", "width", "worst"), MEANS)
def test_a_mean_has_its_tables_worst_variance(
    epsilon: str, levels: int, width: int, worst: str
) -> None:
    mechanism = MeanMechanism.for_epsilon(Fraction(epsilon))

    assert (mechanism.window.levels, mechanism.window.width) == (levels, width)
    assert f"{float(mechanism.variance):.4f}" == worst


def test_the_tables_never_change() -> None:
    pinned = sha256(json.dumps(TABLES).encode()).hexdigest()

    assert pinned == "658a8d17d85d9ea6be711d2283a834c0476e44a5f6272656b612a30eca333652"


def variance_at(mechanism: MeanMechanism, point: Fraction) -> Fraction:
    """The variance of a decoded report at one number, in the units of [-1, 1], from the rows."""
    means, decoded = mechanism.means, mechanism.decoded
    place = means[0] + point * (means[-1] - means[0])
    start = max(s for s in range(len(means) - 1) if means[s] <= place)
    up = (place - means[start]) / (means[start + 1] - means[start])
    rows = zip(
        mechanism.transition_matrix[start], mechanism.transition_matrix[start + 1], strict=True
    )
    row = [(1 - up) * one + up * two for one, two in rows]
    second = sum((p * value * value for p, value in zip(row, decoded, strict=True)), Fraction(0))
    return 4 * (second - point * point)


@pytest.mark.parametrize("epsilon", ["0.1", "2", "4.7"])
def test_a_means_variance_is_the_worst_over_all_numbers(epsilon: str) -> None:
    """No number of a fine grid varies more, and some number varies as much."""
    mechanism = MeanMechanism.for_epsilon(Fraction(epsilon))
    found = [variance_at(mechanism, Fraction(step, 100)) for step in range(101)]

    assert max(found) <= mechanism.variance
    assert float(max(found)) == pytest.approx(float(mechanism.variance), rel=1e-3)


@pytest.mark.parametrize("epsilon", ["0.3", "2.2", "16"])
def test_the_chosen_table_has_the_least_variance(epsilon: str) -> None:
    chosen = MeanMechanism.for_epsilon(Fraction(epsilon)).variance
    others = []
    for levels, width, half in TABLES:
        lower = tuple(-value for value in reversed(half) if value or levels % 2 == 0)
        others.append(
            MeanMechanism(
                SquareWave.for_epsilon(Fraction(epsilon), levels, width), (*lower, *half)
            ).variance
        )

    assert chosen == min(others)


@pytest.mark.parametrize("epsilon", ["0.000001", "0.1", "1", "2", "8", "16"])
def test_decoded_means_are_antisymmetric(epsilon: str) -> None:
    """A level decoded to u for a number is decoded to 1 - u for its mirror image."""
    decoded = MeanMechanism.for_epsilon(Fraction(epsilon)).decoded

    assert all(one + two == 1 for one, two in zip(decoded, reversed(decoded), strict=True))


@pytest.mark.parametrize("values", [(1, 1, 1, 1), (0, 0, 3, -1), (3, -1, 0, 4), (0, 0, 0, 1)])
def test_values_whose_means_do_not_ascend_are_refused(values: tuple[int, ...]) -> None:
    """All, the last pair, the first, or two that are equal: no number lies between them."""
    with pytest.raises(ValueError, match=r"do not ascend"):
        MeanMechanism(SquareWave.for_epsilon(ONE, 4, 2), values)


def test_values_and_starts_of_another_count_are_refused() -> None:
    with pytest.raises(ValueError, match=r"3 values for 4 levels"):
        MeanMechanism(SquareWave.for_epsilon(ONE, 4, 2), (1, 2, 3))
    with pytest.raises(ValueError, match=r"the window has 10 starts, not 256"):
        DistributionMechanism(SquareWave.for_epsilon(ONE, 12, 3))


WIDTHS = [("0.05", 247), ("0.5", 183), ("1", 131), ("2", 67), ("4", 15), ("8", 1), ("16", 1)]


@pytest.mark.parametrize(("epsilon", "width"), WIDTHS)
def test_a_distributions_window_narrows_as_epsilon_grows(epsilon: str, width: int) -> None:
    """W = 2b + 1 by the square wave's formula; 256 starts whatever the width."""
    window = DistributionMechanism.for_epsilon(Fraction(epsilon)).window

    assert window.width == width
    assert window.levels == 255 + width
    assert window.inputs == 256


def test_a_bucket_is_a_256th_of_the_range() -> None:
    edges = (0, 1, (1 << 24) - 1, 1 << 24, GRID // 2, GRID - 1, GRID)

    assert [find_bucket(grid) for grid in edges] == [0, 0, 0, 1, 128, 255, 255]
