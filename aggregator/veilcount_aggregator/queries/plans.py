"""The query of a plan and its result: any of devices, epsilon and error from the other two."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from fractions import Fraction
from typing import Annotated

from veilcount_analysis import planning
from veilcount_analysis.errors import QueryError
from veilcount_analysis.planning import BatchTerms, PlanResult, QuestionShape, TrustedParty
from veilcount_analysis.planning.solvers import (
    KINDS,
    MAX_TESTED,
    MOST,
    MOST_ARMS,
    MOST_EFFECT,
    REPORT_EPSILON,
    YES_OR_NO,
)
from veilcount_analysis.query_params import (
    Delta,
    Level,
    QueryParams,
    parameter,
    parse_integers,
    parse_range,
)
from veilcount_shared.collection import Measure
from veilcount_shared.collection.batches import MAX_GRACE
from veilcount_shared.domain import FEWEST_MOST, MAX_FEATURES, MAX_LISTED, MIN_FEATURES
from veilcount_shared.epsilon import EPSILON_MAX
from veilcount_shared.errors import EpsilonError
from veilcount_shared.limits import MAX_SLOTS
from veilcount_shared.mechanisms.selection import MAX_INPUTS
from veilcount_shared.periods import Unit

Epsilon = Annotated[
    Fraction | None,
    parameter(
        "Epsilon of one answer, at most 6 decimals; shuffled, against the server alone.",
        gt=0,
        fix=f"give a number above 0 and at most {EPSILON_MAX}",
        metavar="EPS",
    ),
]
Values = Annotated[
    int | None,
    parameter(
        "Number of values; 2, the default, is a yes or no.",
        ge=YES_OR_NO,
        le=MAX_INPUTS,
        metavar="K",
    ),
]
Range = Annotated[
    tuple[Fraction, Fraction] | None,
    parameter("Range of a number.", parse=parse_range, metavar="LOW..HIGH"),
]
NumberMeasure = Annotated[Measure, parameter("What is estimated of a number.")]


@dataclass(frozen=True, kw_only=True)
class PlanQuery(QueryParams):
    """A question that is planned, and two of devices, epsilon and error."""

    trust: Annotated[TrustedParty, parameter("Who is trusted.")] = TrustedParty.LOCAL
    devices: Annotated[int | None, parameter("Number of devices that answer.", ge=1, le=MOST)] = (
        None
    )
    epsilon: Epsilon = None
    error: Annotated[
        float | None,
        parameter(
            "Half the width of the interval: of a share 0.02 is 2 points; of a number,"
            " in its own units.",
            ge=1e-12,
            le=1e12,
            fix="give half the width of an interval, such as 0.01",
        ),
    ] = None
    share: Annotated[
        float | None,
        parameter(
            "Smallest share of an open string that is found half of the time, in place of the"
            " error: with candidates.",
            gt=0,
            lt=1,
            fix="give a share between 0 and 1, such as 0.005",
        ),
    ] = None
    values: Values = None
    range: Range = None
    candidates: Annotated[
        int | None,
        parameter(
            "Open strings: number of candidates that will be tested.",
            ge=1,
            le=MAX_TESTED,
            metavar="D",
        ),
    ] = None
    features: Annotated[
        int | None,
        parameter(
            "Number of features: the error is that of a moment of numbers from -1 to 1.",
            ge=MIN_FEATURES,
            le=MAX_FEATURES,
            metavar="K",
        ),
    ] = None
    questions: Annotated[
        tuple[int, ...] | None,
        parameter(
            "Several questions by how many answers each has: the error is that of a cell of two.",
            parse=parse_integers,
            metavar="N,N,...",
        ),
    ] = None
    several: Annotated[
        int | None,
        parameter(
            "Number of values of which a person ticks all that apply: the error is that of a value"
            " that few tick.",
            ge=YES_OR_NO,
            le=MAX_LISTED,
            metavar="K",
        ),
    ] = None
    most: Annotated[
        int | None,
        parameter(
            "With several: how many values a person ticks at most; without it one bit is drawn.",
            ge=FEWEST_MOST,
            lt=MAX_LISTED,
            metavar="L",
        ),
    ] = None
    measure: NumberMeasure = Measure.MEAN
    unit: Annotated[Unit, parameter("What epsilon protects.")] = Unit.MONTH
    periods: Annotated[int | None, parameter("Number of periods.", ge=1, le=MAX_SLOTS)] = None
    arms: Annotated[
        int,
        parameter(
            "2: the error is that of the difference between two arms.",
            ge=1,
            le=MOST_ARMS,
            fix=f"give 1 or {MOST_ARMS}",
        ),
    ] = 1
    level: Level = 0.95
    delta: Delta = Fraction(1, 10**6)
    fakes: Annotated[
        Fraction,
        parameter(
            "Assumed share of fake reports, 0.01 by default.",
            ge=0,
            lt=1,
            fix="give 0 or more, and less than 1",
        ),
    ] = Fraction(1, 100)
    design_effect: Annotated[
        float,
        parameter(
            "Of shares that are reweighted to margins: the design effect, from the weighting of an"
            " estimate; 1.5 to 2 is usual.",
            name="weights",
            ge=1,
            le=MOST_EFFECT,
            fix=f"give 1 to {MOST_EFFECT}",
        ),
    ] = 1.0
    start: Annotated[date | None, parameter("The first UTC day, today by default.")] = None
    report_epsilon: Annotated[
        Fraction,
        parameter(
            "Shuffled: epsilon of one report, against shuffler and server together.",
            name="report",
            gt=0,
            le=float(REPORT_EPSILON),
            fix=f"give a number above 0 and at most {REPORT_EPSILON}",
            metavar="EPS",
        ),
    ] = REPORT_EPSILON
    public: Annotated[
        bool, parameter("Shuffled, of values: presence is public, so absence is not a value more.")
    ] = False
    grace: Annotated[
        int | None,
        parameter(
            "Shuffled: the days that a batch waits for devices; by default as the unit asks.",
            ge=1,
            le=MAX_GRACE,
            metavar="DAYS",
        ),
    ] = None

    rho: Annotated[
        Fraction | None,
        parameter(
            "Open strings that a curator releases: rho of one release, of a budget that others"
            " share; by default a release pays a whole period, in epsilon and delta.",
            gt=0,
            fix="give a number above 0 with at most twelve decimals",
        ),
    ] = None

    def question(self, today: date) -> QuestionShape:
        """Return the question that is planned."""
        yes_or_no = all(getattr(self, kind) is None for kind in KINDS)
        return QuestionShape(
            start=self.start or today,
            values=YES_OR_NO if yes_or_no else self.values,
            batch=BatchTerms(
                report_epsilon=self.report_epsilon, grace=self.grace, public=self.public
            ),
            **{name: getattr(self, name) for name in _QUESTION},
        )


_QUESTION = (
    "range",
    "candidates",
    "features",
    "questions",
    "several",
    "most",
    "measure",
    "unit",
    "periods",
    "arms",
    "level",
    "delta",
    "fakes",
    "design_effect",
    "rho",
)


def plan(query: PlanQuery, today: date) -> PlanResult:
    """Return the plan."""
    try:
        return planning.plan(
            query.question(today),
            trust=query.trust,
            devices=query.devices,
            epsilon=query.epsilon,
            error=query.error,
            share=query.share,
        )
    except EpsilonError as refused:
        raise QueryError("epsilon", refused.epsilon, refused.fix) from refused
