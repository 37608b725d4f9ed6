"""The reduction of docs/shuffler-security.md, by enumeration: views of small batches, exactly.

A view is everything that a server is handed: a sequence of messages, here of k-ary randomized
response with rational probabilities. Nothing of the product's accounting is used.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise, permutations, product
from math import factorial

import pytest

from veilcount_analysis.audit import small_batches
from veilcount_analysis.audit.small_batches import view_distribution

View = tuple[int, ...]
Distribution = dict[View, Fraction]
E = Fraction(4)  # e^epsilon of the report, so that every probability is rational
BATCH = Fraction(2)  # e^epsilon of the batch, at which delta is compared


def response(k: int, x: int) -> list[Fraction]:
    """Return the probabilities of messages of k-ary randomized response."""
    return [(E if y == x else 1) / (E + k - 1) for y in range(k)]


def views(k: int, x: int, covers: int, others: View = (), copies: int = 1) -> Distribution:
    """Return the distribution of the sequence: one report, covers, and known reports."""
    chances: Distribution = {}
    for message, own in enumerate(response(k, x)):
        for drawn in product(range(k), repeat=covers):
            content = (message,) * copies + drawn + others
            weight = own / Fraction(k) ** covers / factorial(len(content))
            for order in permutations(content):
                chances[order] = chances.get(order, Fraction(0)) + weight
    return chances


def delta(one: small_batches.ChanceOfView, other: small_batches.ChanceOfView) -> Fraction:
    """Return the least delta at which the two are (log 2, delta)-indistinguishable."""
    return small_batches.delta(one, other, BATCH)


def two_counts(k: int, covers: int) -> Fraction:
    """Return delta by the likelihood of two counts alone [Lemma 6]."""
    size, (p, q) = covers + 1, response(k, 0)[:2]
    total = Fraction(0)
    for content in product(range(k), repeat=size):
        first, second = content.count(0), content.count(1)
        one, other = (p * count + q * (size - count) for count in (first, second))
        total += max(one - BATCH * other, Fraction(0)) / size * Fraction(k) ** (1 - size)
    return total


@pytest.mark.parametrize("k", [2, 3, 4])
@pytest.mark.parametrize("covers", [0, 1, 2, 3])
def test_a_view_is_worth_its_two_counts(k: int, covers: int) -> None:
    for x, y in permutations(range(k), 2):
        assert delta(views(k, x, covers), views(k, y, covers)) == two_counts(k, covers)


@pytest.mark.parametrize("covers", [0, 1, 2, 3])
def test_a_random_order_reveals_the_multiset_alone(covers: int) -> None:
    """What the audit enumerates, against sequences. Planted: an order that is kept."""
    cover = dict.fromkeys(range(3), Fraction(1, 3))
    reports = [dict(enumerate(response(3, x))) for x in (0, 1)]
    mixed, kept = (
        delta(*(view_distribution([own, *([cover] * covers)], mixed=mixed) for own in reports))
        for mixed in (True, False)
    )

    assert mixed == delta(views(3, 0, covers), views(3, 1, covers))
    assert (kept > mixed) == (covers > 0)


@pytest.mark.parametrize("others", [(0,), (1, 1), (0, 2)])
def test_known_reports_change_nothing(others: View) -> None:
    """Sybils, whatever they send: the server takes them out of the multiset again."""
    pair = [views(3, x, 2, others) for x in (0, 1)]

    assert delta(*pair) == two_counts(3, 2)


def test_one_cover_too_few_is_noticed() -> None:
    deltas = [two_counts(3, covers) for covers in range(5)]

    assert all(less > more for less, more in pairwise(deltas))


def test_a_report_that_is_counted_twice_gives_itself_away() -> None:
    """Planted: a shuffler that does not remove doubles; whoever copies an envelope marks it."""
    marked = [views(3, x, 2, copies=2) for x in (0, 1)]

    assert delta(*marked) > two_counts(3, 2)


def test_without_covers_the_report_is_all_that_is_left() -> None:
    """Two batches of one crowd: what is in both, byte for byte, are the reports without covers."""
    own = views(3, 0, 0), views(3, 1, 0)

    assert max(own[0][view] / own[1][view] for view in own[0]) == E
    assert delta(*own) > 3 * two_counts(3, 3)


# -- kinds that draw before they randomize ---------------------------------------------------------

PARTS = ((Fraction(3, 4), 2), (Fraction(1, 4), 3))  # drawn with this probability, of so many cells


def part_response(x: int) -> Distribution:
    """A part is drawn whatever the input, and then its cell of the input is randomized."""
    return {
        (part, y): chance * probability
        for part, (chance, k) in enumerate(PARTS)
        for y, probability in enumerate(response(k, x % k))
    }


def by_part() -> Distribution:
    return {(part, y): chance / k for part, (chance, k) in enumerate(PARTS) for y in range(k)}


def by_message() -> Distribution:
    """Planted: uniform among all messages."""
    return dict.fromkeys(by_part(), Fraction(1, sum(k for _, k in PARTS)))


def batch_delta(cover: Callable[[], Distribution], covers: int) -> Fraction:
    """Return delta of one report among covers of a distribution, over unordered batches."""
    covered = [cover()] * covers
    return delta(*(view_distribution([part_response(x), *covered]) for x in (0, 1)))


def test_what_is_drawn_first_cancels() -> None:
    """Covers that draw the part as devices do hide more than as many that are uniform."""
    assert batch_delta(by_part, 3) < batch_delta(by_message, 3)


def test_covers_are_the_least_probabilities_of_all_messages() -> None:
    least = {view: min(part_response(x)[view] for x in range(6)) for view in by_part()}

    def is_blanket(cover: Distribution) -> bool:
        """Whether covers are proportional to the least probabilities within each part."""
        views_of = [[view for view in cover if view[0] == part] for part in range(len(PARTS))]
        shares = [{least[view] / cover[view] for view in own} for own in views_of]
        drawn = [sum(cover[view] for view in own) for own in views_of]
        return all(len(own) == 1 for own in shares) and drawn == [chance for chance, _ in PARTS]

    assert is_blanket(by_part())
    assert not is_blanket(by_message()), "planted: the part is not drawn as devices draw it"
    assert not is_blanket(part_response(0)), "planted: covers of one value"
