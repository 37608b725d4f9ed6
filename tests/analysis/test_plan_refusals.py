"""Questions that nobody could ask, and numbers from which no plan can be made."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from veilcount_analysis.errors import QueryError
from veilcount_analysis.planning import QuestionShape, TrustedParty, plan
from veilcount_shared.errors import EpsilonError
from veilcount_shared.periods import Unit

from .planned_questions import FEATURES, ONE, QUESTIONS, STRINGS, TABLES, yes_or_no


@pytest.mark.parametrize(
    ("question", "trust", "fix"),
    [
        ({"design_effect": 0.5}, TrustedParty.LOCAL, "give 1 to 100"),
        (
            {"values": None, "range": (Fraction(0), Fraction(9)), "design_effect": 2},
            *(TrustedParty.LOCAL, "shares of values are reweighted"),
        ),
        ({"design_effect": 2}, TrustedParty.CENTRAL, "which only local reports have"),
        ({"design_effect": 2}, TrustedParty.SHUFFLED, "which only local reports have"),
    ],
)
def test_a_design_effect_is_of_local_shares(
    question: dict[str, Any], trust: TrustedParty, fix: str
) -> None:
    with pytest.raises(QueryError, match=f"weights = .*{fix}"):
        plan(yes_or_no(**question), trust=trust, devices=20_000, epsilon=ONE)


@pytest.mark.parametrize(
    ("key", "more"),
    [
        ("values", {"values": None}),
        ("values", {"range": (Fraction(0), ONE)}),
        ("values", {"values": 1}),
        ("values", {"values": 2**20 + 1}),
        ("range", {"values": None, "range": (ONE, ONE)}),
        ("range", {"values": None, "range": (Fraction(0), Fraction(1, 3))}),
        ("arms", {"arms": 3}),
        ("periods", {"periods": 0}),
        ("periods", {"periods": 1025}),
        ("periods", {"unit": Unit.USER, "periods": 2}),
        ("level", {"level": 1.0}),
        ("delta", {"delta": Fraction(0)}),
        ("fakes", {"fakes": ONE}),
        ("unit", {"unit": "month"}),
        ("measure", {"measure": "mean"}),
        ("candidates", {"values": None, "candidates": 0}),
        ("features", {"values": None, "features": 1}),
        ("features", {"values": None, "features": 99}),
        ("questions", {"values": None, "questions": (2,)}),
        ("questions", {"values": None, "questions": (2, 1)}),
        ("questions", {"values": None, "questions": (2, 17, 16)}),
        ("arms", {"values": None, "questions": (2, 3), "arms": 2}),
        ("several", {"values": None, "several": 1}),
        ("several", {"values": None, "several": 61}),
        ("values", {"several": 5}),
        ("most", {"most": 2}),
        ("most", {"values": None, "several": 5, "most": 1}),
        ("most", {"values": None, "several": 5, "most": 5}),
        ("arms", {"values": None, "features": 3, "arms": 2}),
    ],
)
def test_a_question_nobody_could_ask_is_refused(key: str, more: dict[str, object]) -> None:
    with pytest.raises(QueryError) as refused:
        yes_or_no(**more)

    assert refused.value.field == key


HALVES = yes_or_no(values=None, range=(Fraction("0.5"), ONE))
LARGE = yes_or_no(values=None, range=(Fraction(0), Fraction(2_000_000)))
CURATED: dict[str, Any] = {"trust": TrustedParty.CENTRAL, "devices": 1000, "epsilon": ONE}
OUT_OF_REACH: dict[str, Any] = {"devices": 20, "error": 1e-9}
TWO = "exactly two of devices, epsilon and error"


@pytest.mark.parametrize(
    ("question", "numbers", "reason"),
    [
        (yes_or_no(), {}, TWO),
        (yes_or_no(), {"devices": 10}, TWO),
        (yes_or_no(), {"devices": 10, "epsilon": ONE, "error": 0.1}, TWO),
        (yes_or_no(), CURATED | {"trust": "central"}, 'trust = "central": give one of local'),
        (yes_or_no(), {"devices": 10, "error": 0.0}, "error"),
        (yes_or_no(arms=2), {"devices": 1, "epsilon": ONE}, "devices"),
        (yes_or_no(), {"devices": 10, "epsilon": Fraction(17)}, "epsilon"),
        (yes_or_no(values=50), OUT_OF_REACH, "give more devices or a wider one"),
        (yes_or_no(), OUT_OF_REACH | {"trust": TrustedParty.SHUFFLED}, "give more devices"),
        (HALVES, CURATED, "give integers"),
        (LARGE, CURATED, "give integers"),
        (QUESTIONS[-1], CURATED, "a curator sums"),
        (STRINGS, {"devices": 1000, "error": 0.01}, "error = .* give a share"),
        (FEATURES, {"devices": 1000, "share": 0.01}, "share = .* an error"),
        (FEATURES, CURATED, "no query of features"),
        (TABLES, CURATED, "no query of questions"),
    ],
)
def test_numbers_from_which_no_plan_can_be_made_are_refused(
    question: QuestionShape, numbers: dict[str, Any], reason: str
) -> None:
    with pytest.raises((QueryError, EpsilonError), match=reason):
        plan(question, **numbers)
