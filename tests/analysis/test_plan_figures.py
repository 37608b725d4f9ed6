"""What a plan states: what it reveals, detects and costs; simulated answers agree."""

from __future__ import annotations

from fractions import Fraction
from math import isclose, sqrt

import numpy as np
import pytest

from veilcount_analysis.estimation import IntervalTarget
from veilcount_analysis.estimation.find_budget import chance_of_first
from veilcount_analysis.estimation.question_shares import QuestionShares
from veilcount_analysis.mechanisms.candidate_search import Candidates, found_places
from veilcount_analysis.mechanisms.moments import MomentsHandler
from veilcount_analysis.mechanisms.pair_tables import tables_handler
from veilcount_analysis.planning import PlanResult, QuestionShape, TrustedParty, plan
from veilcount_analysis.privacy.budget.composition import compose_answers
from veilcount_analysis.privacy.trust_models import Quantity
from veilcount_analysis.simulation import Population, simulate
from veilcount_analysis.simulation.associated_answers import simulate_answers
from veilcount_analysis.text import number_format
from veilcount_shared import parse_collections, select_mechanism
from veilcount_shared.composition import guessing_probability
from veilcount_shared.domain import GRID, OpenStrings
from veilcount_shared.guessing import percent
from veilcount_shared.mechanisms import MeanMechanism, Moments, SubsetSelection
from veilcount_shared.periods import Unit

from .planned_questions import FEATURES, ONE, QUESTIONS, TABLES, yes_or_no


def test_an_open_string_of_the_planned_share_is_found_half_of_the_time() -> None:
    """Of 60 strings 11 to 49 are found but 1 time in 10^6, if each is found half of the time.

    Strings of .7 and 1.4 of that share are found rarely, or nearly always.
    """
    question = yes_or_no(values=None, candidates=10_000)
    planned = plan(question, devices=10**5, epsilon=Fraction(4))
    (made,) = parse_collections(planned.toml, lambda _: []).values()
    assert isinstance(made.domain, OpenStrings)
    assert planned.detectable is not None
    candidates = Candidates.from_texts(made.domain, [f"word {place}" for place in range(10_000)])
    alpha = chance_of_first(10_000)
    generator = np.random.default_rng(1)
    shares = np.repeat([0.7, 1, 1.4], 60) * planned.detectable
    held = np.rint(shares * planned.devices).astype(np.int64)
    rest = generator.integers(made.domain.size, size=planned.devices - held.sum())
    places = np.concatenate([candidates.places[: len(held)], rest])
    people = Population(places, np.concatenate([held, np.ones_like(rest)]))
    found = found_places(made, simulate(made, people, generator), candidates, alpha)
    less, exact, more = np.bincount(found[found < len(held)] // 60, minlength=3)

    assert less < 11 <= exact < 50 <= more


def test_correlations_and_moments_are_as_wide_as_planned() -> None:
    """Of independent numbers that are spread evenly; the moment's noise is its worst case."""
    n, generator = 300_000, np.random.default_rng(1)
    planned = plan(FEATURES, devices=n, epsilon=ONE)
    handler = MomentsHandler(Moments.for_epsilon(ONE, 3))
    points = generator.integers(GRID + 1, size=(n, 3))
    messages = handler.draw_messages(handler.draw_moments(points, generator), generator)
    means = handler.means(np.bincount(messages, minlength=handler.mechanism.messages))
    found = means.correlations(0.95)

    assert planned.correlation is not None
    assert (found.high - found.low) / 2 == pytest.approx(planned.correlation, rel=0.1)
    assert planned.error.rmse < np.sqrt(means.variances).max() < planned.population.rmse


def test_cells_and_answers_are_as_wide_as_planned() -> None:
    """Of answers that are spread evenly; the largest table, and the question that errs most."""
    n, generator = 300_000, np.random.default_rng(1)
    planned = plan(TABLES, devices=n, epsilon=ONE)
    (made,) = parse_collections(planned.toml, lambda _: []).values()
    tables = tables_handler(made).tables(simulate_answers(made, n, 0.0, generator))
    assert tables is not None
    errors = [
        QuestionShares.from_tables(
            [
                (table, pair.index(question))
                for table, pair in zip(tables, ((0, 1), (0, 2), (1, 2)), strict=True)
                if question in pair
            ]
        )
        .error(IntervalTarget.COHORT)
        .max()
        for question in range(3)
    ]

    assert planned.answer is not None
    assert 1.96 * max(errors) == pytest.approx(planned.answer, rel=0.02)
    assert tables[2].cells.error(IntervalTarget.COHORT).max() == pytest.approx(
        planned.error.rmse, rel=0.02
    )
    assert planned.answer < planned.error.half_width * 1.1


@pytest.fixture(scope="module")
def planned() -> PlanResult:
    """Ten values in 30 days, 100,000 devices, epsilon 1."""
    return plan(yes_or_no(values=10, unit=Unit.DAY), devices=10**5, epsilon=ONE)


def test_the_sentence_states_what_one_and_all_answers_reveal(planned: PlanResult) -> None:
    """Rounded up, so that "at most" is true: .7311 and .99613. Of one answer it is shorter."""
    local, central = (
        plan(yes_or_no(unit=Unit.USER), trust=trust, devices=1000, epsilon=ONE).sentence
        for trust in (TrustedParty.LOCAL, TrustedParty.CENTRAL)
    )

    assert planned.sentence == (
        "someone who sees one answer guesses a yes/no right at most 73.2 %; all 30 of them, 99.7 %"
    )
    assert planned.guess_one == guessing_probability(ONE, 1)
    assert planned.guess_all == guessing_probability(ONE, 30)
    assert local.endswith("at most 73.2 %")
    assert central.endswith("at most 73.2 % (the curator sees the truth)")
    assert "sees one release" in central


@pytest.mark.parametrize(
    ("chance", "expected"),
    [("0.5", "50 %"), ("0.99612", "99.7 %"), ("0.99999", "99.999 %"), ("0.9999999999", "100 %")],
)
def test_chances_are_rounded_up_and_not_to_certainty(chance: str, expected: str) -> None:
    assert percent(Fraction(chance)) == expected


def test_what_stands_out_and_what_fakes_can_push_follow_from_p_and_q(planned: PlanResult) -> None:
    """From all empty values, jointly in 19 of 20 lists: z at 1 - 0.05 / k, times the floor.

    1 % of fakes count (1 - Q) / (P - Q) or - Q / (P - Q) each.
    """
    mechanism, headroom = Quantity.of_values(10).family(planned.device or ONE), planned.headroom
    assert isinstance(mechanism, SubsetSelection)
    q, gap = float(mechanism.Q), float(mechanism.P - mechanism.Q)

    assert planned.detectable is not None
    assert isclose(planned.detectable, 2.575829 * sqrt(q * (1 - q) / 10**5) / gap, rel_tol=1e-6)
    assert isclose(headroom.push, 0.01 * (1 - q) / gap)
    assert isclose(headroom.pull, 0.01 * q / gap)


@pytest.mark.parametrize("question", QUESTIONS[4:-1], ids=str)
def test_headroom_of_numbers_is_what_their_messages_decode_to(question: QuestionShape) -> None:
    local = plan(question, devices=1000, epsilon=ONE).headroom
    central = plan(question, trust=TrustedParty.CENTRAL, devices=1000, epsilon=ONE).headroom

    assert local.push > 0.01 * question.quantity.width > local.pull * 0.1
    assert (central.push, central.pull) == (0.01 * question.quantity.width, 0)
    if question.range == (-ONE, ONE):
        assert isclose(local.push, 0.02 * float(max(MeanMechanism.for_epsilon(ONE).decoded)))


def test_a_plan_states_the_cost_of_all_periods_and_its_sampling_error(planned: PlanResult) -> None:
    assert planned.composition == compose_answers(select_mechanism(10, 1).mechanism, 30)
    assert planned.population.half_width > planned.error.half_width


@pytest.mark.parametrize(
    ("question", "trust", "epsilon", "shown"),
    [
        (yes_or_no(values=4), TrustedParty.LOCAL, 1, "the least possible"),
        (yes_or_no(values=1_000_000), TrustedParty.LOCAL, 6, "24.4 % above the least possible"),
        (QUESTIONS[4], TrustedParty.LOCAL, 1, None),
        (yes_or_no(values=4), TrustedParty.CENTRAL, 1, None),
    ],
    ids=["few values", "many values", "a mean has none stated", "a curator has none stated"],
)
def test_a_plan_states_its_excess_over_the_least(
    question: QuestionShape, trust: TrustedParty, epsilon: int, shown: str | None
) -> None:
    excess = plan(question, trust=trust, devices=10**6, epsilon=Fraction(epsilon)).excess

    assert (None if excess is None else number_format.excess(excess)) == shown
