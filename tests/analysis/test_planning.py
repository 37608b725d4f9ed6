"""Any of devices, epsilon and error from the other two; and the definition that gives them."""

from __future__ import annotations

from datetime import date
from fractions import Fraction
from itertools import product
from math import isclose, sqrt
from typing import Any

import numpy as np
import pytest

from veilcount_analysis.errors import QueryError
from veilcount_analysis.estimation import IntervalTarget
from veilcount_analysis.estimation.find_budget import chance_of_first
from veilcount_analysis.estimation.question_shares import QuestionShares
from veilcount_analysis.kinds.registry import kind_of
from veilcount_analysis.mechanisms import handler_of
from veilcount_analysis.mechanisms.candidate_search import Candidates, found_places
from veilcount_analysis.mechanisms.moments import MomentsHandler
from veilcount_analysis.mechanisms.pair_tables import tables_handler
from veilcount_analysis.planning import PlanResult, QuestionShape, TrustedParty, plan
from veilcount_analysis.privacy.budget.composition import compose_answers
from veilcount_analysis.privacy.shuffled import cover_delta, shuffled_error
from veilcount_analysis.privacy.trust_models import ErrorEstimate, Quantity
from veilcount_analysis.simulation import Population, simulate
from veilcount_analysis.simulation.associated_answers import simulate_answers
from veilcount_analysis.text import number_format
from veilcount_shared import Collection, parse_collections, select_mechanism
from veilcount_shared.collection import Measure, Model
from veilcount_shared.composition import guessing_probability
from veilcount_shared.domain import GRID, OpenStrings
from veilcount_shared.errors import EpsilonError
from veilcount_shared.guessing import percent
from veilcount_shared.mechanisms import Identity, MeanMechanism, Moments, SubsetSelection
from veilcount_shared.periods import Unit

ONE = Fraction(1)
START = date(2026, 12, 1)
STEP = Fraction(1, 10**6)


def yes_or_no(**more: object) -> QuestionShape:
    """A yes or no in each of 12 months."""
    return QuestionShape(**{"start": START, "values": 2, **more})  # type: ignore[arg-type] # by name


QUESTIONS = [
    yes_or_no(),
    yes_or_no(arms=2),
    yes_or_no(values=10, unit=Unit.EVENT, periods=7),
    yes_or_no(values=1000, level=0.99),
    yes_or_no(values=None, range=(Fraction(0), Fraction(240))),
    yes_or_no(values=None, range=(Fraction(-1), Fraction(1)), arms=2, unit=Unit.USER),
    yes_or_no(values=None, range=(Fraction(0), Fraction(9)), measure=Measure.DISTRIBUTION),
    yes_or_no(values=None, range=(Fraction(0), Fraction(9)), measure=Measure.RANGES),
]
TICKED = [yes_or_no(values=None, several=12, most=3), yes_or_no(values=None, several=5, arms=2)]


#: those that travel by a shuffler: one batch a period, which is not split
MIXED = [q for q in QUESTIONS + TICKED if q.arms == 1 and q.unit is not Unit.EVENT]

#: a curator has no query of ranges, nor of several values
CASES = [
    (question, trust)
    for question, trust in product(QUESTIONS + TICKED, TrustedParty)
    if trust is not TrustedParty.CENTRAL
    or (question.measure is not Measure.RANGES and question.several is None)
    if trust is not TrustedParty.SHUFFLED or question in MIXED
]


def width(question: QuestionShape) -> float:
    return 0.02 * question.quantity.width


@pytest.mark.one_in(4)
@pytest.mark.parametrize(("question", "trust"), CASES, ids=str)
def test_the_error_that_devices_and_epsilon_give_needs_them(
    question: QuestionShape, trust: TrustedParty
) -> None:
    numbers = plan(question, trust=trust, devices=20_000, epsilon=ONE)
    error = numbers.error.half_width
    devices = plan(question, trust=trust, epsilon=ONE, error=error)
    epsilon = plan(question, trust=trust, devices=20_000, error=error)

    assert (numbers.found, devices.found, epsilon.found) == ("error", "devices", "epsilon")
    assert devices.devices <= 20_000
    assert epsilon.epsilon <= 1
    assert max(devices.error.half_width, epsilon.error.half_width) <= error


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    ("question", "trust"), [each for each in CASES if each[1] is not TrustedParty.SHUFFLED], ids=str
)
def test_a_millionth_or_device_less_is_too_few(
    question: QuestionShape, trust: TrustedParty
) -> None:
    error = width(question)
    few = plan(question, trust=trust, epsilon=ONE, error=error)
    low = plan(question, trust=trust, devices=20_000, error=error)
    fewer = plan(question, trust=trust, devices=few.devices - question.arms, epsilon=ONE)
    lower = plan(question, trust=trust, devices=20_000, epsilon=low.epsilon - STEP)

    assert few.error.half_width <= error < fewer.error.half_width
    assert low.error.half_width <= error < lower.error.half_width


@pytest.mark.parametrize("question", MIXED, ids=str)
def test_a_shuffled_plan_is_hidden_by_its_covers_alone(question: QuestionShape) -> None:
    """One cover less would not be enough: then nothing is counted on but covers."""
    for numbers in ({"epsilon": ONE}, {"devices": 20_000}):
        planned = plan(question, trust=TrustedParty.SHUFFLED, error=width(question), **numbers)
        mechanism = pasted(question, planned).mechanism
        overlaps, at = handler_of(mechanism).overlaps(), float(planned.epsilon)
        assert planned.batch is not None

        assert planned.device == 4
        assert cover_delta(overlaps, planned.batch.covers, at) <= planned.delta
        assert cover_delta(overlaps, planned.batch.covers - 1, at) > planned.delta


def needed(**question: Any) -> int:
    trust = question.pop("trust", TrustedParty.LOCAL)
    return plan(yes_or_no(**question), trust=trust, epsilon=ONE, error=0.01).devices


def test_devices_follow_values_trust_arms_and_level() -> None:
    """n = V (1.96 / 0.01)^2 at epsilon 1; half of the devices, and two noises, in each arm."""
    by_trust = [needed(trust=trust) for trust in TrustedParty]

    assert isclose(needed(values=256), 1.4e5, rel_tol=0.01)
    assert by_trust == sorted(by_trust, reverse=True)
    assert needed(arms=2) % 2 == 0
    assert abs(needed(arms=2) - 4 * needed()) <= 8
    assert isclose(needed(level=0.99) / needed(), (2.5758 / 1.96) ** 2, rel_tol=1e-3)


def test_reweighted_shares_need_as_many_more_devices_as_the_design_effect_says() -> None:
    question = yes_or_no(design_effect=1.7)
    planned = plan(question, devices=17_000, epsilon=ONE)
    same = plan(yes_or_no(), devices=10_000, epsilon=ONE)

    assert isclose(needed(design_effect=1.7), 1.7 * needed(), rel_tol=1e-3)
    assert planned.error.half_width == same.error.half_width
    assert planned.population.half_width == same.population.half_width
    assert planned.detectable == same.detectable
    assert planned.over_time == ()
    assert "margins" in planned.toml
    assert pasted(question, planned).cells == 1


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


STRINGS = yes_or_no(values=None, candidates=10**6)
FEATURES = yes_or_no(values=None, features=3)
TABLES = yes_or_no(values=None, questions=(2, 3, 4))


@pytest.mark.parametrize("trust", [TrustedParty.LOCAL, TrustedParty.SHUFFLED])
@pytest.mark.parametrize(
    ("question", "key"), [(STRINGS, "share"), (FEATURES, "error"), (TABLES, "error")]
)
def test_strings_features_and_tables_are_planned_from_any_two(
    question: QuestionShape, key: str, trust: TrustedParty
) -> None:
    def figure(planned: PlanResult) -> float:
        return planned.error.half_width if key == "error" else planned.detectable or 1.0

    numbers = plan(question, trust=trust, devices=10**5, epsilon=ONE)
    goal: dict[str, Any] = {key: figure(numbers)}
    devices = plan(question, trust=trust, epsilon=ONE, **goal)
    epsilon = plan(question, trust=trust, devices=10**5, **goal)

    assert (numbers.found, devices.found, epsilon.found) == (key, "devices", "epsilon")
    assert devices.devices == pytest.approx(10**5, rel=1e-3)
    assert float(epsilon.epsilon) == pytest.approx(1, abs=0.01)
    assert max(figure(devices), figure(epsilon)) <= goal[key]
    (made,) = parse_collections(numbers.toml, lambda _: []).values()
    assert made.mechanism == question.quantity.family(made.unit_epsilon)


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


def pasted(question: QuestionShape, planned: PlanResult) -> Collection:
    lines = [f"label {number}" for number in range(question.values or 0)]
    return parse_collections(planned.toml, lambda _: lines)["planned"]


@pytest.mark.one_in(2)
@pytest.mark.parametrize(("question", "trust"), CASES, ids=str)
def test_the_definition_gives_planned_numbers(question: QuestionShape, trust: TrustedParty) -> None:
    planned = plan(question, trust=trust, devices=20_000, error=width(question))
    collection = pasted(question, planned)
    quantity, each = kind_of(collection).quantity, 20_000 // question.arms

    assert collection.unit_epsilon == (planned.device or planned.epsilon)
    assert collection.model == str(trust)
    assert collection.periods == question.number_of_periods == planned.composition.answers
    assert collection.cells == question.arms
    assert collection.epsilon_user == planned.composition.plain
    if trust is TrustedParty.CENTRAL:
        assert collection.model is Model.CENTRAL
        assert isinstance(collection.mechanism, Identity)
        error = quantity.central(collection.unit_epsilon, each, question.level)
    else:
        assert collection.message_bits == planned.bits
        error = quantity.local(collection.unit_epsilon, each, question.level)
    if planned.batch is not None:
        rmse = shuffled_error(collection.randomizer, each, planned.batch.covers) * quantity.width
        error = ErrorEstimate(rmse, rmse)
    assert isclose(planned.error.rmse, error.rmse * sqrt(question.arms))


@pytest.mark.parametrize("unit", Unit)
@pytest.mark.parametrize("start", [START, date(2027, 2, 17)])
def test_a_campaign_has_the_planned_periods_from_any_day_on(unit: Unit, start: date) -> None:
    question = yes_or_no(start=start, unit=unit)
    collection = pasted(question, plan(question, devices=1000, epsilon=ONE))

    assert collection.periods == question.number_of_periods
    assert collection.start == start


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
