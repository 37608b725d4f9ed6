"""How many strings may be found by chance: half a string, over all that is ever tested.

It is spent from two budgets of a quarter each, and a candidate passes with the larger of the two
chances. By call: each spends half of what is left, spread over its candidates, so the first list is
tested about as well as if it were the only one. By number: each candidate costs what its place
among all tests ever costs, so that many small calls are not ruined. The sum is at most half a
string, whatever is asked for, in whatever order.
"""

from __future__ import annotations

from collections.abc import Sequence

BY_CALL = 0.25  # strings expected to be found by chance, over all calls
#: a call with fewer candidates, named by hand, spends no more than BY_HAND: a chance find in one of
#: eight such lists would be too many
HANDFUL, BY_HAND = 100, 0.05
#: candidates tested so far, a tenth more since they are counted approximately; strings expected to
#: be found by chance among them: another quarter
PRICES = ((110, 0.01), (11_000, 0.025), (1.1e6, 0.2), (1.1e8, 0.01), (1.1e10, 0.005))
#: the same for discoveries, each of which may find several strings by chance: half a string
DISCOVERIES = ((1.5, 0.375), (11, 0.1), (1100, 0.02))


def chance(tested: float, prices: Sequence[tuple[float, float]] = PRICES) -> float:
    """Return the probability with which noise lets a candidate pass, after so many tested ones.

    All together at most the sum of the prices is expected to be found by chance, whether all
    candidates are named at once or one by one: each stage adds at most its own part to the sum.
    """
    for most, expected in prices:
        if tested <= most:
            return expected / most
    raise ValueError(f"{tested:,.0f} tests, at most {prices[-1][0]:,.0f}")


def spent_by(candidates: int, left: float) -> float:
    """Return the cost of a call, from the part of BY_CALL that is left."""
    half = left / 2
    return min(half, BY_HAND) if candidates < HANDFUL else half


def chance_of_call(candidates: int, left: float, tested: float) -> float:
    """Return the probability with which noise lets each candidate of a call pass.

    `tested` are all so far, those of the call included.
    """
    return max(spent_by(candidates, left) / candidates, chance(tested))


def chance_of_first(candidates: int) -> float:
    """Return that of the first call, with so many candidates."""
    return chance_of_call(candidates, BY_CALL, candidates)
