"""The plan of a question: two of devices, epsilon and error, the third, and what it reveals; and
the definition that it was computed for, as a collections file to paste.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import islice
from math import isfinite, sqrt
from string import ascii_lowercase

from veilcount_shared.collection import Measure
from veilcount_shared.composition import guessing_probability
from veilcount_shared.epsilon import parse_epsilon
from veilcount_shared.guessing import percent
from veilcount_shared.mechanisms import Identity, PairTables, Randomizer
from veilcount_shared.mechanisms.selection import MAX_INPUTS
from veilcount_shared.periods import Unit

from ..errors import QueryError
from ..estimation import CUT, noise_line
from ..estimation.moments import MomentMeans
from ..mechanisms import handler_of, share_handler_of
from ..mechanisms.pair_tables import PairTablesHandler
from ..privacy.budget.composition import ComposedEpsilon, compose_answers
from ..privacy.trust_models.quantity import ErrorEstimate, two_sided, with_sampling
from ..releases.noise_kinds import NoiseKind
from ..releases.string_threshold import StringThreshold
from ..text.number_format import decimal, delta
from .batches import BatchPlan, batch_plan
from .covers import CoverSolver, among_covers, grace_of, hides_presence, least_reports
from .curated_strings import CuratedStrings, string_thresholds
from .over_time import TimeStrategy, time_strategies
from .solvers import (
    YES_OR_NO,
    BatchTerms,
    CentralSolver,
    LocalSolver,
    QuestionShape,
    Solution,
    Solver,
    TrustedParty,
)


def _curator(question: QuestionShape) -> Solver:
    return (CentralSolver if question.candidates is None else CuratedStrings)(question)


SOLVERS: dict[TrustedParty, Callable[[QuestionShape], Solver]] = {
    TrustedParty.LOCAL: LocalSolver,
    TrustedParty.SHUFFLED: CoverSolver,
    TrustedParty.CENTRAL: _curator,
}

LISTED = 24  # more values than these are better kept in a file of their own


def definition(question: QuestionShape, trust: TrustedParty, choice: Solution) -> str:
    """Return a file with one collection; app, name, question and values are for the author."""
    return "\n".join(['app = "my-app"', "", "[planned]", *_lines(question, trust, choice), ""])


def _lines(question: QuestionShape, trust: TrustedParty, choice: Solution) -> Iterator[str]:
    yield 'question = "What would you like to know?"'
    yield from _domain(question, trust)
    if choice.device is None:
        yield 'model = "central"'
        yield f"budget = {decimal(choice.epsilon)}"
        yield 'adjacency = "substitute"'
        if choice.threshold is not None:
            yield from _strings(question, choice.threshold)
    else:
        yield f"epsilon = {decimal(choice.device)}"
    if trust is TrustedParty.SHUFFLED:
        yield from _batch(question, choice)
    yield f'unit = "{question.unit}"'
    yield f"from = {question.start}"
    yield f"until = {question.until}"
    if question.arms > 1:
        yield 'segments = {arm = ["A", "B"]}'
    if question.design_effect > 1:
        yield "# and the segments that are reweighted, with margins = {...}"


def _domain(question: QuestionShape, trust: TrustedParty) -> Iterator[str]:
    if question.range is not None:
        yield f"range = [{', '.join(map(decimal, question.range))}]"
        if trust is not TrustedParty.CENTRAL:
            yield f'measure = "{question.measure}"'
    elif question.candidates is not None:
        yield 'values = "open"'
    elif question.features is not None:
        names = (f"{name} = [0, 1]" for name in islice(ascii_lowercase, question.features))
        yield f"features = {{{', '.join(names)}}}"
        yield 'measure = "moments"'
    elif question.questions is not None:
        answers = (", ".join(map(str, range(1, size + 1))) for size in question.questions)
        lists = (f"{name} = [{own}]" for name, own in zip(ascii_lowercase, answers, strict=False))
        yield f"questions = {{{', '.join(lists)}}}"
        yield "tables = true"
    elif question.several is not None:
        yield _values(question.several)
        yield 'choose = "several"'
        if question.most is not None:
            yield f"most = {question.most}"
    elif question.values == YES_OR_NO:
        yield "boolean = true"
    elif question.values is not None and question.values <= LISTED:
        yield _values(question.values)
    else:
        yield f'values_file = "values.txt"  # {question.values:,} lines'


def _strings(question: QuestionShape, threshold: StringThreshold) -> Iterator[str]:
    yield f"delta = {delta(question.delta)}"
    if threshold.noise is NoiseKind.LAPLACE:
        yield 'noise = "laplace"'


def _values(number: int) -> str:
    labels = (f'"value {place}"' for place in range(1, number + 1))
    return f"values = [{', '.join(labels)}]"


def _batch(question: QuestionShape, choice: Solution) -> Iterator[str]:
    """Yield the model, and a batch whose covers keep the epsilon that was planned."""
    yield 'model = "shuffled"'
    if not hides_presence(question):
        yield 'presence = "public"'
    rules = {
        "epsilon": decimal(choice.epsilon),
        "delta": delta(question.delta),
        "least": least_reports(choice.devices),
        "covers": choice.covers,
        "grace": grace_of(question),
    }
    yield f"batch = {{{', '.join(f'{key} = {number}' for key, number in rules.items())}}}"


@dataclass(frozen=True, slots=True)
class Headroom:
    """How far a share of fake devices could bias an estimate, up or down, in its own units."""

    fakes: Fraction
    push: float
    pull: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanResult:
    """Devices, epsilon and error that belong together; `found` names the one that was computed."""

    trust: TrustedParty
    found: str
    quantity: str
    values: int | None
    candidates: int | None  # for open strings
    features: int | None
    questions: tuple[int, ...] | None
    several: int | None
    most: int | None  # that a person ticks of several
    arms: int
    level: float
    design_effect: float
    devices: int
    epsilon: Fraction
    delta: Fraction
    device: Fraction | None
    error: ErrorEstimate
    population: ErrorEstimate
    mechanism: str
    bits: int
    excess: float | None  # of the variance above the least possible; None: no noise, or a number
    #: the smallest share that stands out from noise; an open string of it is found half of the time
    detectable: float | None
    correlation: float | None  # half of the interval of one near 0, of evenly spread numbers
    answer: float | None  # half of the interval of an answer's share, of several questions
    headroom: Headroom
    unit: Unit
    composition: ComposedEpsilon
    guess_one: Fraction
    guess_all: Fraction
    sentence: str
    toml: str
    over_time: tuple[TimeStrategy, ...]  # at this epsilon for the whole campaign
    batch: BatchPlan | None  # where reports travel by shuffler
    strings: tuple[StringThreshold, ...]  # that a curator releases: as planned, and otherwise


def plan(
    question: QuestionShape,
    *,
    trust: TrustedParty = TrustedParty.LOCAL,
    devices: int | None = None,
    epsilon: Fraction | None = None,
    error: float | None = None,
    share: float | None = None,
) -> PlanResult:
    """Return the plan: give exactly two of devices, epsilon and error.

    Of open strings, `share` is the smallest one that is found, in place of an error.
    """
    if not isinstance(trust, TrustedParty):
        raise QueryError("trust", trust, "give one of " + ", ".join(TrustedParty))
    named, error = question.accuracy, _accuracy(question, error, share)
    _require_two(named, devices, epsilon, error)
    if devices is not None and devices < question.arms:
        raise QueryError("devices", devices, f"give at least one for each of {question.arms}")
    if trust is TrustedParty.CENTRAL:
        _countable(question)
    if trust is not TrustedParty.LOCAL and question.design_effect > 1:
        fix = "margins are of public segments, which only local reports have: give 1"
        raise QueryError("weights", question.design_effect, fix)
    if trust is not TrustedParty.SHUFFLED and question.batch != BatchTerms():
        raise QueryError("trust", trust, "the terms of a batch are for shuffled: leave them out")
    if question.rho is not None and (
        trust is not TrustedParty.CENTRAL or question.candidates is None
    ):
        fix = "of open strings that a curator releases: leave it out"
        raise QueryError("rho", question.rho, fix)
    solver = SOLVERS[trust](question)
    if devices is not None and epsilon is not None:
        return _planned(solver, trust, named, solver.error(devices, parse_epsilon(epsilon)))
    if devices is not None and error is not None:
        return _planned(solver, trust, "epsilon", solver.epsilon(devices, error))
    if epsilon is not None and error is not None:
        return _planned(solver, trust, "devices", solver.devices(parse_epsilon(epsilon), error))
    raise QueryError("plan", None, f"give exactly two of devices, epsilon and {named}")


def _accuracy(question: QuestionShape, error: float | None, share: float | None) -> float | None:
    """Return what is asked to be small, and refuse what this question does not have."""
    if question.candidates is None and share is not None:
        raise QueryError("share", share, "of open strings: give candidates, or an error instead")
    if question.candidates is not None and error is not None:
        raise QueryError("error", error, "open strings are found or not: give a share instead")
    return error if share is None else share


def _require_two(
    named: str, devices: int | None, epsilon: Fraction | None, accuracy: float | None
) -> None:
    numbers = {"devices": devices, "epsilon": epsilon, named: accuracy}
    missing = [key for key, value in numbers.items() if value is None]
    if len(missing) != 1:
        raise QueryError("plan", missing, f"give exactly two of devices, epsilon and {named}")
    if accuracy is not None and not accuracy > 0:
        raise QueryError(named, accuracy, "give a number above 0")


def _countable(question: QuestionShape) -> None:
    """A curator sums integers, as many as a collection may have, and its collection no measure."""
    for kind in ("features", "questions", "several"):
        if getattr(question, kind) is not None:
            named = "several values" if kind == "several" else kind
            raise QueryError("trust", "central", f"a curator has no query of {named}: give local")
    if question.range is None:
        return
    if question.measure is Measure.RANGES:
        raise QueryError("measure", question.measure, "a curator sums: plan the mean")
    low, high = question.range
    if (low.denominator, high.denominator) != (1, 1) or high - low >= MAX_INPUTS:
        raise QueryError("range", question.range, f"give integers less than {MAX_INPUTS:,} apart")


def _planned(solver: Solver, trust: TrustedParty, found: str, choice: Solution) -> PlanResult:
    question, quantity = solver.question, solver.quantity
    per_arm = solver.each(choice.devices)
    mechanism = None if choice.device is None else quantity.family(choice.device)
    shown = choice.epsilon if choice.device is None else choice.device
    times = question.number_of_periods
    is_pure = trust is not TrustedParty.SHUFFLED and choice.threshold is None
    # a curator may release all periods in one number, of which only the plain sum holds
    one, every = (
        [_guess(question, choice, shown * number) for number in (1, times)]
        if trust is TrustedParty.CENTRAL
        else [guessing_probability(shown, number) for number in (1, times)]
    )
    return PlanResult(
        trust=trust,
        found=found,
        quantity=quantity.name,
        values=question.values,
        candidates=question.candidates,
        features=question.features,
        questions=question.questions,
        several=question.several,
        most=question.most,
        arms=question.arms,
        level=question.level,
        design_effect=question.design_effect,
        devices=choice.devices,
        epsilon=choice.epsilon,
        delta=Fraction(0) if is_pure else question.delta,
        device=choice.device,
        error=choice.error,
        population=with_sampling(
            choice.error, per_arm, quantity.sampling(None) * question.arms, question.level
        ),
        mechanism=handler_of(mechanism or Identity(2)).describe(),
        bits=0 if mechanism is None else mechanism.bits,
        excess=None if choice.device is None else quantity.excess(choice.device),
        detectable=_detectable(solver, choice, mechanism),
        correlation=_correlation(solver, choice),
        answer=_answer(solver, choice, mechanism),
        headroom=_headroom(solver, mechanism),
        unit=question.unit,
        composition=_together(question, choice, mechanism),
        guess_one=one,
        guess_all=every,
        sentence=sentence(trust, one, every, times),
        toml=definition(question, trust, choice),
        over_time=time_strategies(question, trust, choice.devices, choice.epsilon),
        batch=batch_plan(solver, choice) if isinstance(solver, CoverSolver) else None,
        strings=string_thresholds(question, choice),
    )


def _guess(question: QuestionShape, choice: Solution, epsilon: Fraction) -> Fraction:
    """Return how often a bit is guessed from releases; delta of the time all may be revealed."""
    chance = guessing_probability(epsilon, 1)
    return chance if choice.threshold is None else chance + question.delta * (1 - chance)


def _detectable(solver: Solver, choice: Solution, mechanism: Randomizer | None) -> float | None:
    """Return the least share that stands out from all values that nobody has, jointly."""
    inputs, per_arm = solver.question.values, solver.each(choice.devices)
    if inputs is None:
        return choice.least_share
    if mechanism is None:
        curator = solver.question.quantity.curator(choice.epsilon)
        return curator.half_width(CUT / inputs) / per_arm
    response = among_covers(share_handler_of(mechanism), per_arm, choice.covers)
    return noise_line(response, per_arm, inputs)


def _correlation(solver: Solver, choice: Solution) -> float | None:
    """Return half of the interval of a correlation near 0; None if none can be stated."""
    features = solver.question.features
    if features is None or choice.device is None:
        return None
    variance = choice.error.rmse**2 * choice.devices
    means = MomentMeans.evenly_spread(features, choice.devices, variance)
    correlation = means.correlations(solver.question.level)
    width = float(correlation.high[0] - correlation.low[0]) / 2
    return width if isfinite(width) else None


def _answer(solver: Solver, choice: Solution, mechanism: Randomizer | None) -> float | None:
    """Return half of the interval of the share of an answer, from all pairs of its question."""
    if not isinstance(mechanism, PairTables):
        return None
    cell = handler_of(mechanism).noise_variance()
    noise = PairTablesHandler(mechanism).share_variance() / cell * choice.error.rmse**2
    return two_sided(solver.question.level) * sqrt(noise)


def _headroom(solver: Solver, mechanism: Randomizer | None) -> Headroom:
    """Each fake device can count for (1 - Q) / (P - Q) of a person, or for -Q / (P - Q)."""
    fakes, width = solver.question.fakes, solver.quantity.width
    push, pull = (1.0, 0.0) if mechanism is None else handler_of(mechanism).reach()
    return Headroom(fakes, float(fakes) * push * width, float(fakes) * pull * width)


def _together(
    question: QuestionShape, choice: Solution, mechanism: Randomizer | None
) -> ComposedEpsilon:
    if mechanism is not None:
        return compose_answers(mechanism, question.number_of_periods, question.delta)
    return ComposedEpsilon(
        answers=question.number_of_periods,
        delta=question.delta,
        plain=choice.epsilon * question.number_of_periods,
        optimal=None,
        specific=None,
    )


def sentence(trust: TrustedParty, one: Fraction, every: Fraction, times: int) -> str:
    """Return what the plan promises a person, plainly."""
    seen = "release" if trust is TrustedParty.CENTRAL else "answer"
    whose = " (the curator sees the truth)" if trust is TrustedParty.CENTRAL else ""
    seen += " and knows whose it is" if trust is TrustedParty.SHUFFLED else ""
    alone = f"someone who sees one {seen} guesses a yes/no right at most {percent(one)}"
    if times == 1:
        return alone + whose
    return f"{alone}; all {times} of them, {percent(every)}{whose}"
