"""The result of an estimate: rows of figures in time ranges; OpenAPI schemas are made of it."""

from __future__ import annotations

from datetime import date
from typing import Annotated, Any

from msgspec import Meta, Struct

from veilcount_analysis.estimation import LookCount, View
from veilcount_analysis.kinds.estimate_query import Denominator, GroupBy
from veilcount_analysis.kinds.labels import Value
from veilcount_analysis.kinds.registry import KINDS_BY_NAME
from veilcount_analysis.kinds.results import Figure, Weighting
from veilcount_analysis.text.privacy_guarantees import PrivacyFigures
from veilcount_shared.periods import Unit

from ..json_results import Count, Counts

ResultValue = Annotated[
    Value, Meta(description="the value; of crossed domains and ranges, an object")
]


Looks = Annotated[
    LookCount, Meta(description="number of looks at growing data for which the intervals hold")
]
Validity = Annotated[str, Meta(description="the same in words")]


class LossRow(Struct):
    """Losses that devices reported, each as an order of magnitude."""

    reason: str
    devices: Count
    least: Count
    most: Annotated[Count | None, Meta(description="null: no end")]
    text: str


class RangeResult(Struct, rename={"first": "from", "last": "to"}):
    """The figures of a time range of whole periods, both days included."""

    first: date
    last: date
    first_period: Count
    last_period: Count
    open_period: Annotated[
        bool, Meta(description="its latest period is still open: estimates will change")
    ]
    n: Count
    usable: Annotated[bool, Meta(description="whether n reports are enough for figures to be read")]
    adequacy: Annotated[str, Meta(description="the same as a sentence")]
    estimand: Annotated[str, Meta(description="what the intervals estimate")]
    contributions: Annotated[
        Count, Meta(description="largest number of reports of one person in n")
    ]
    covers: Annotated[
        Count, Meta(description="cover reports of a shuffler, which are subtracted: not in n")
    ]
    verdicts: Annotated[Counts, Meta(description="rejected reports by verdict, all segments")]
    figures: tuple[Figure, ...]
    headline: Annotated[
        str,
        Meta(
            description="the finding in a sentence; empty if n reports are too few, and on pages"
            " but the first"
        ),
    ]
    leader: Annotated[
        ResultValue | None,
        Meta(
            description="the value with the largest share, all values compared at once; null if"
            " none is significantly the largest, or on one page of several"
        ),
    ]
    bands: Annotated[
        str, Meta(description="what the bands of curve and quantiles cover; empty without them")
    ]
    weighting: Annotated[
        Weighting | None,
        Meta(description="how shares were reweighted to `margins`; null without them"),
    ]


class CandidateList(Struct, forbid_unknown_fields=True):
    """Strings to look for, and the other parameters of the estimate."""

    candidates: Annotated[list[str], Meta(min_length=1, max_length=1_000_000)]
    parameters: dict[str, list[str]] = {}


#: what each fact of a kind is, by its name
FACTS = {name: text for kind in KINDS_BY_NAME.values() for name, text in kind.facts.items()}


class SeriesResult(Struct):
    """The estimates under one definition."""

    fingerprint: str
    question: str
    kind: Annotated[
        str, Meta(description="kind of question", extra_json_schema={"enum": [*KINDS_BY_NAME]})
    ]
    unit: Unit
    measured_in: Annotated[str | None, Meta(description="unit of a number; null: not stated")]
    epsilon: PrivacyFigures
    promise: list[str]
    counts: Annotated[str, Meta(description="what n counts")]
    facts: Annotated[
        dict[str, Any],
        Meta(
            description="named numbers of the kind",
            extra_json_schema={
                "properties": {name: {"description": text} for name, text in FACTS.items()}
            },
        ),
    ]
    notes: Annotated[list[str], Meta(description="what the facts mean")]
    poisoning_test_failed: bool
    poisoning_test: Annotated[str, Meta(description="result of the poisoning test, and its limits")]
    unplaced: Annotated[Counts, Meta(description="rejected reports without a valid period")]
    losses: list[LossRow]
    ranges: list[RangeResult]


class EstimateResult(Struct):
    """The series of a collection side by side, the newest first. They are never summed."""

    collection: str
    by: GroupBy
    view: View
    level: Annotated[float, Meta(description="level of the interval of each value on its own")]
    looks: Looks
    validity: Validity
    among: Denominator
    fakes: float
    segments: dict[str, str]
    series: list[SeriesResult]
