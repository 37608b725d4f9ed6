"""The parts of the audit: exact bounds, and a search that finds what is there to be found."""

from __future__ import annotations

from math import exp, inf, isclose

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binom

from veilcount_analysis.audit import audit, judge
from veilcount_analysis.audit.events import (
    MessageFeature,
    MessageLength,
    MessageTable,
    SymbolAtPlace,
    SymbolCount,
    SymbolGrid,
    WholeMessage,
    grids,
)
from veilcount_analysis.audit.search import MessagePair, ranked
from veilcount_analysis.estimation import clopper_pearson

N = 4000

# -- bounds ----------------------------------------------------------------------------------------


def test_bounds_are_those_of_the_textbook() -> None:
    """5 of 10 at 95 %: .1871 to .8129. Of n: alpha^(1/n) to 1; of none: 0 to 1 - alpha^(1/n)."""
    edge = 0.01 ** (1 / 20)

    assert isclose(clopper_pearson.lower(5, 10, 0.025), 0.1871, abs_tol=5e-5)
    assert isclose(clopper_pearson.upper(5, 10, 0.025), 0.8129, abs_tol=5e-5)
    assert clopper_pearson.lower(0, 20, 0.01) == 0
    assert isclose(clopper_pearson.upper(0, 20, 0.01), 1 - edge)
    assert isclose(clopper_pearson.lower(20, 20, 0.01), edge)
    assert clopper_pearson.upper(20, 20, 0.01) == 1
    assert clopper_pearson.epsilon(0, 7, 50, 0.001) == -inf


@pytest.mark.parametrize("p", [0.001, 0.3, 0.9])
@pytest.mark.parametrize("alpha", [0.0005, 0.05])
def test_a_bound_is_wrong_with_probability_alpha_at_most(p: float, alpha: float) -> None:
    """Summed exactly over all counts of 50 trials, either way."""
    hits = np.arange(51)
    weights = binom.pmf(hits, 50, p)

    assert weights[clopper_pearson.lower(hits, 50, alpha) > p].sum() <= alpha
    assert weights[clopper_pearson.upper(hits, 50, alpha) < p].sum() <= alpha


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
@pytest.mark.parametrize("alpha", [0.001, 0.1])
def test_a_bound_on_epsilon_is_wrong_with_alpha_at_most(epsilon: float, alpha: float) -> None:
    hits = np.arange(61)
    p = 1 / (1 + exp(-epsilon))
    weights = np.outer(binom.pmf(hits, 60, p), binom.pmf(hits, 60, p * exp(-epsilon)))
    proven = clopper_pearson.epsilon(hits[:, None], hits, 60, alpha)

    assert weights[proven > epsilon].sum() <= alpha


# -- messages --------------------------------------------------------------------------------------


def test_symbols_are_cut_from_the_first_bit_or_to_the_last() -> None:
    """16 bits hold one symbol of 10 at either end, and one grid of bits."""
    messages = MessageTable.from_messages([b"\xff\x00", b"\x12\x34"], 2)
    first, last = grids([10], 2)

    assert list(grids([1, 8, 17], 2)) == [SymbolGrid(1), SymbolGrid(8)]
    assert messages.symbols(first).tolist() == [[0xFF00 >> 6], [0x1234 >> 6]]
    assert messages.symbols(last).tolist() == [[0xFF00 & 0x3FF], [0x1234 & 0x3FF]]


@pytest.mark.parametrize("size", [3, 20])
def test_whole_messages_that_differ_have_different_codes(size: int) -> None:
    sent = [b"", b"\0", b"\0\0", b"\1", b"\0\1", b"\1\0", b"a" * size, b"a" * size]
    codes = WholeMessage().read(MessageTable.from_messages(sent, size))

    assert len(set(codes.tolist())) == 7
    assert codes[-1] == codes[-2]


@pytest.mark.parametrize(
    ("reading", "expected"),
    [
        (MessageLength(), [2, 3]),
        (SymbolAtPlace(SymbolGrid(1), 7), [1, 0]),
        (SymbolAtPlace(SymbolGrid(8), 1), [7, 1]),
        (SymbolCount(SymbolGrid(8), 1), [1, 2]),
        (SymbolCount(SymbolGrid(1), 1), [4, 3]),
    ],
)
def test_a_reading_is_a_number_of_a_message(reading: MessageFeature, expected: list[int]) -> None:
    messages = MessageTable.from_messages([b"\1\7", b"\2\1\1"], 3)

    assert reading.read(messages).tolist() == expected


@pytest.mark.parametrize("bits", [0, 25])
def test_symbols_of_no_width_or_too_wide_are_refused(bits: int) -> None:
    with pytest.raises(ValueError, match="1 to 24"):
        SymbolGrid(bits)


# -- what the search finds, besides the bugs of `test_planted_bugs.py` -----------------------------


def rng() -> np.random.Generator:
    return np.random.default_rng(7)


def rows(*columns: int | NDArray[np.int64]) -> list[bytes]:
    """Return N messages with these bytes: each a number for all, or one for each."""
    table = np.stack([np.broadcast_to(column, N) for column in columns], axis=1)
    return [row.tobytes() for row in table.astype(np.uint8)]


def test_a_symbol_is_found_wherever_it_stands() -> None:
    """The value 9 occurs in one message and not in the other, at a random place."""
    noise = rng().integers(10, 250, size=(N, 12))
    marked = noise.copy()
    marked[np.arange(N), rng().integers(12, size=N)] = 9
    finding = judge(rows(*noise.T), rows(*marked.T), 1)

    assert finding.event.startswith(("byte value 9 occurs 1 time: ", "byte value 9 occurs 0 times"))
    assert finding.measured > 5


def test_a_symbol_over_two_bytes_is_found_by_its_width() -> None:
    """The second of three 10-bit symbols, packed to the last bit, is often 777 from one value."""
    noise = rng().integers(1024, size=(2, N, 3))
    noise[0, :, 1][rng().random(N) < 0.5] = 777
    first, second = (
        [((a << 20) | (b << 10) | c).to_bytes(4, "big") for a, b, c in side.tolist()]
        for side in noise
    )
    finding = judge(first, second, 1, symbol_bits=(1, 8, 10))

    assert finding.event.startswith("10-bit symbol 1 (after 2 bits) is 777: ")
    assert finding.measured > 3.5


@pytest.mark.parametrize("filler", [0, 12])
def test_a_set_of_messages_is_found_where_no_part_differs(filler: int) -> None:
    one = rng().integers(8, size=N)
    fill = [0] * filler
    finding = judge(rows(one, one, *fill), rows(one, (one + 1) % 8, *fill), 1)

    assert finding.event.startswith("the message is one of ")
    assert finding.measured > 4


def test_a_length_is_found() -> None:
    noise = rng().integers(256, size=(2, N))
    finding = judge(rows(*noise), rows(noise[0], noise[1], noise[1]), 1)

    assert finding.event.startswith(("the length is 2 bytes: ", "the length is 3 bytes: "))


def test_an_event_of_either_value_is_found() -> None:
    rare, none = rows((rng().random(N) < 0.05).astype(np.int64)), rows(0)
    there, back = judge(rare, none, 1), judge(none, rare, 1)

    assert there.measured == back.measured > 2
    assert "from the first value, 0 from the second" in there.event
    assert "from the second value, 0 from the first" in back.event


def test_nothing_is_found_where_nothing_is() -> None:
    first, second = rng().integers(256, size=(2, 6, N))
    finding = judge(rows(*first), rows(*second), 0.1)

    assert finding.measured < 0.1
    assert not finding.broken


def test_a_value_seen_once_does_not_lead() -> None:
    more = MessageTable.from_messages([b"\1"] * 100 + [b"\2"] + [b"\3"] * 9, 1)
    less = MessageTable.from_messages([b"\1"] * 30 + [b"\3"] * 80, 1)

    assert ranked(SymbolAtPlace(SymbolGrid(8), 0), MessagePair(more, less)).tolist() == [1, 2, 3]


# -- what is refused -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("claimed", "samples", "alpha", "reason"),
    [
        (1, 20, 0.001, "can never show more"),
        (1, 3, 0.5, "can never show more"),
        (4.5, N, 0.001, "up to 4"),
        (0, N, 0.001, "up to 4"),
        (1, N, 0, "between 0 and 1"),
        (1, N, 1, "between 0 and 1"),
    ],
)
def test_an_audit_that_could_find_nothing_is_refused_before_it_draws(
    claimed: float, samples: int, alpha: float, reason: str
) -> None:
    """Too few samples, a claim beyond what samples reach, or an alpha that is none."""

    def emit(value: object) -> bytes:
        pytest.fail("it drew")

    with pytest.raises(ValueError, match=reason):
        audit(emit, (0, 1), claimed, samples=samples, alpha=alpha)


def test_unequal_numbers_of_messages_are_refused() -> None:
    with pytest.raises(ValueError, match="3999 of the other"):
        judge([b"\0"] * N, [b"\0"] * (N - 1), 1)
