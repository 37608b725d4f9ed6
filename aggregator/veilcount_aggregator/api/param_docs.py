"""What the doors to answers take behind the question mark, for the document."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any

from veilcount_shared.collection import Measure
from veilcount_shared.periods import Unit

from ..analysis.planning import TrustModel
from ..analysis.trust_models.search import MOST
from ..estimation import LookCount, View
from ..queries import budgets, comparison, contrasts, estimate_query, plans
from ..queries.estimate_query import MOST_ROWS, Denominator, GroupBy

Schema = dict[str, Any]

_DAY = {"type": "string", "format": "date"}
_TEXTS = {"type": "array", "items": {"type": "string", "minLength": 1}}
_NUMBER = {"type": "number"}
_SHARE = {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}


def _count(most: int) -> Schema:
    return {"type": "integer", "minimum": 1, "maximum": most}


def _word(kind: type[StrEnum]) -> Schema:
    return {"type": "string", "enum": [each.value for each in kind]}


_SAYS: Mapping[str, tuple[str, Schema]] = {
    "from": ("The first UTC day; the period that it lies in is covered as a whole.", _DAY),
    "to": ("The last UTC day; likewise.", _DAY),
    "by": ("How the range is cut; no shorter than a period.", _word(GroupBy)),
    "view": ("raw is unbiased; consistent is a composition.", _word(View)),
    "level": ("The level of intervals, 0.95 unless told.", _SHARE),
    "segment": ("NAME:VALUE, one for each segment.", _TEXTS),
    "series": ("A fingerprint, or its first digits; all with answers unless told.", _TEXTS),
    "top": ("The largest shares; their intervals cover all values at once.", _count(MOST_ROWS)),
    "values": (
        "These values; of crossed domains objects in JSON, of a number's ranges LOW..HIGH.",
        _TEXTS,
    ),
    "among": (
        "Where presence is hidden: of all devices, or of those that answered.",
        _word(Denominator),
    ),
    "simultaneous": ("Intervals that cover all values at once.", {"type": "boolean"}),
    "looks": (
        "one: intervals valid at one planned look; every: at every look at a growing range.",
        _word(LookCount),
    ),
    "group": ("NAME:VALUE,VALUE; of a crossed domain, the name of a part.", _TEXTS),
    "page": ("Of large domains, so many values a page.", _count(MOST_ROWS)),
    "size": ("Values a page, 100 unless told.", _count(MOST_ROWS)),
    "fakes": (
        "The share of fake reports that the band reckons with.",
        {"type": "number", "minimum": 0, "exclusiveMaximum": 1},
    ),
    "a": ("One side: a segment NAME:VALUE, a range DAY..DAY, series:FINGERPRINT.", _TEXTS),
    "b": ("The other side.", _TEXTS),
    "n": ("Persons or answers; those that are there unless told.", _count(budgets.MOST_PERSONS)),
    "delta": ("Of the bounds that have one, 0.000001 unless told.", _SHARE),
}
_PLAN: Mapping[str, tuple[str, Schema]] = {
    "trust": ("Who is trusted.", _word(TrustModel)),
    "devices": ("How many answer.", _count(MOST)),
    "epsilon": ("What an answer reveals, a decimal.", {"type": "number", "exclusiveMinimum": 0}),
    "error": ("Half the width of an interval.", {"type": "number", "exclusiveMinimum": 0}),
    "values": ("How many values; 2, a yes or no, unless told.", _count(1_000_000)),
    "range": ("LOW..HIGH, of a number.", {"type": "string", "minLength": 1}),
    "measure": ("What is asked of a number.", _word(Measure)),
    "unit": ("What epsilon protects.", _word(Unit)),
    "periods": ("In how many it is asked.", _count(1024)),
    "arms": ("Two: the error is that of their difference.", _count(2)),
    "start": ("The first UTC day, today unless told.", _DAY),
}
_NEEDED = frozenset({"a", "b"})

ESTIMATE, COMPARE = estimate_query.PARAMETERS, comparison.PARAMETERS
BUDGET, CONTRAST, PLAN = budgets.PARAMETERS, contrasts.PARAMETERS, plans.PARAMETERS


def described(names: Iterable[str]) -> list[Schema]:
    """Return parameters as the document has them."""
    names = tuple(names)
    says = {**_SAYS, **_PLAN} if names == PLAN else _SAYS
    return [_parameter(name, *says[name]) for name in names]


def _parameter(name: str, says: str, schema: Schema) -> Schema:
    return {
        "name": name,
        "in": "query",
        "required": name in _NEEDED,
        "description": says,
        "schema": schema,
    }
