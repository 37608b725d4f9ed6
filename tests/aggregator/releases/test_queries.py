"""Requests: read strictly, spelled in one way, priced for each period by their sensitivity."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from fractions import Fraction
from itertools import combinations_with_replacement

import numpy as np
import pytest

from veilcount_analysis.errors import QueryError
from veilcount_analysis.releases import PricedQuery, draw_release, price_query
from veilcount_analysis.releases.query import QUERY_TYPES
from veilcount_analysis.releases.sensitivity import person_contributions
from veilcount_analysis.series.series import publishes_n
from veilcount_analysis.text.privacy_guarantees import counts_are_public
from veilcount_shared import Collection
from veilcount_shared.collection import Adjacency, Measure
from veilcount_shared.domain import Boolean, Choice, Cross, Number
from veilcount_shared.periods import Unit

from .release_fixtures import ADD_REMOVE, SUBSTITUTE, Counters, ask, collection, whole

AGE = collection(whole(0, 120))
THEME = collection(Choice(("light", "dark", "system"), "other"))
STARS = collection(Choice((5, 3, 1)))
SWITCH = collection(Boolean())
PLANS = collection(Cross(Boolean(), (("plan", Choice(("free", "paid"))),)))


def meaning(collection_: Collection, query: object) -> object:
    return json.loads(ask(collection_, query).canonical)["query"]


# -- one spelling ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("collection_", "spellings", "one"),
    [
        (AGE, ["age >= 40", "age>=40", " age  >  39 ", "age > 39.5"], {"count": [[40, 120]]}),
        (
            AGE,
            ["age < 2", "age <= 1", {"count": [0, 1]}, {"count": [1, 0, 1]}],
            {"count": [[0, 1]]},
        ),
        (AGE, ["count", "age >= 0", "age >= -5", "age < 999"], {"count": [[0, 120]]}),
        (STARS, ["age >= 3", {"count": [3, 5]}], {"count": [[0, 1]]}),
        (THEME, [{"count": ["other", "light", "dark"]}], {"count": [[0, 1], [3, 3]]}),
        (SWITCH, ["sum", {"count": [True]}], {"count": [[1, 1]]}),
        (PLANS, [{"count": [[True, "free"], [False, "paid"]]}], {"count": [[1, 2]]}),
        (AGE, ["sum"], "sum"),
        (SWITCH, ["mean"], "mean"),
        (THEME, ["histogram"], "histogram"),
    ],
)
def test_what_means_the_same_is_spelled_the_same(
    collection_: Collection, spellings: list[object], one: object
) -> None:
    assert [meaning(collection_, spelling) for spelling in spellings] == [one] * len(spellings)


def test_dates_and_epsilons_are_spelled_in_one_way() -> None:
    """Defaults are written out, 0.50 is 1/2, a date is a date."""
    spelt = [
        price_query({"query": "sum", "epsilon": epsilon, "from": first, "to": last}, AGE).canonical
        for epsilon, first, last in (
            ("0.50", None, None),
            (Fraction(1, 2), "2026-01-10", None),
            (Decimal("0.5"), date(2026, 1, 10), "2026-03-31"),
        )
    ]

    assert set(spelt) == {
        f'{{"collection":"{AGE.fingerprint}","epsilon":500000,"periods":[0,2],"query":"sum"}}'
    }


def test_what_means_something_else_is_spelled_otherwise() -> None:
    other = collection(whole(0, 121))
    questions = [
        ask(AGE, "sum"),
        ask(AGE, "mean"),
        ask(AGE, "sum", "0.999999"),
        ask(AGE, "sum", month=1),
        ask(AGE, "sum", month=2),
        ask(other, "sum"),
        ask(AGE, "age > 40"),
        ask(AGE, "age < 41"),
    ]

    assert len({question.canonical for question in questions}) == len(questions)


# -- the price -------------------------------------------------------------------------------------


def test_each_period_pays_the_whole_epsilon_for_its_own_units() -> None:
    assert ask(AGE, "sum", "0.7").charges == {0: 700_000, 1: 700_000, 2: 700_000}
    assert ask(AGE, "sum", "0.000001", month=2).charges == {1: 1}


@pytest.mark.parametrize(
    ("collection_", "person"),
    [
        (collection(Boolean()), 3),
        (collection(Boolean(), answers=2), 2),
        (collection(Boolean(), unit=Unit.USER), 1),
        (collection(Boolean(), unit=Unit.EVENT, per_day=4), 4 * 81),
        (collection(Boolean(), unit=Unit.EVENT, per_day=4, answers=5), 20),
        (collection(Boolean(), unit=Unit.WEEK), 13),
    ],
)
def test_a_person_is_as_many_units_as_it_gives_answers(
    collection_: Collection, person: int
) -> None:
    question = ask(collection_, "count")

    assert person_contributions(collection_, question.periods) == person
    assert question.person_epsilon == person
    assert question.sensitivity == 1


@pytest.mark.parametrize(
    ("collection_", "public"),
    [
        (collection(Boolean(), SUBSTITUTE), True),
        (collection(Boolean(), SUBSTITUTE, answers=3), True),
        (collection(Boolean(), SUBSTITUTE, answers=2), False),
        (collection(Boolean(), SUBSTITUTE, answers=1), False),
        (collection(Boolean(), SUBSTITUTE, unit=Unit.USER), True),
        (collection(Boolean(), SUBSTITUTE, unit=Unit.EVENT, per_day=2), False),
        (collection(Boolean(), ADD_REMOVE), False),
        (collection(Boolean(), ADD_REMOVE, unit=Unit.USER), False),
    ],
)
def test_n_is_public_only_where_each_person_gives_one_answer_in_every_period(
    collection_: Collection, *, public: bool
) -> None:
    assert publishes_n(collection_) is counts_are_public(collection_) is public
    assert {
        ask(collection_, "histogram", month=month).publishes_n
        for month in MONTHS_OF[collection_.unit]
    } == {public}


#: a release of each month, and of all; of a unit that is no month, of all
MONTHS_OF = dict.fromkeys(Unit, (None,)) | {Unit.MONTH: (1, 2, None)}


# -- what is refused -------------------------------------------------------------------------------

LOCAL = Collection(
    app="acme",
    name="age",
    question="Which?",
    domain=whole(0, 120),
    measure=Measure.MEAN,
    unit=Unit.MONTH,
    start=date(2026, 1, 1),
    until=date(2026, 2, 1),
    epsilon=Fraction(1),
)


@pytest.mark.parametrize(
    ("collection_", "request_", "field", "says"),
    [
        (LOCAL, {"query": "sum", "epsilon": 1}, "collection", "read its estimate"),
        (AGE, {"query": "sum", "epsilon": 1, "by": "day"}, "by", "remove it"),
        (AGE, {"epsilon": 1}, "query", "(missing)"),
        (AGE, {"query": "mode", "epsilon": 1}, "query", '"age >= 1"'),
        (AGE, {"query": "height > 3", "epsilon": 1}, "query", "compare age"),
        (AGE, {"query": "age > 120", "epsilon": 1}, "query", "the answer is 0"),
        (AGE, {"query": {"count": []}, "epsilon": 1}, "query", "give "),
        (AGE, {"query": {"count": "dark"}, "epsilon": 1}, "query", "give "),
        (AGE, {"query": ["sum"], "epsilon": 1}, "query", "give "),
        (AGE, {"query": {"count": [121]}, "epsilon": 1}, "query.count", "from 0 to 120"),
        (STARS, {"query": {"count": [[5]]}, "epsilon": 1}, "query.count", "[5, 3, 1]"),
        (AGE, {"query": {"count": [True]}, "epsilon": 1}, "query.count", "from 0 to 120"),
        (SWITCH, {"query": {"count": [1]}, "epsilon": 1}, "query.count", "[false, true]"),
        (SWITCH, {"query": "age > 0", "epsilon": 1}, "query", "if its values are numbers"),
        (THEME, {"query": "sum", "epsilon": 1}, "query", '"histogram"'),
        (PLANS, {"query": "sum", "epsilon": 1}, "query", '"histogram"'),
        (PLANS, {"query": {"count": [[True, []]]}, "epsilon": 1}, "query.count", "give some of"),
        (AGE, {"query": "sum"}, "epsilon", "(missing)"),
        (AGE, {"query": "sum", "epsilon": 0.7}, "epsilon", "exact"),
        (AGE, {"query": "sum", "epsilon": True}, "epsilon", "exact"),
        (AGE, {"query": "sum", "epsilon": Decimal("NaN")}, "epsilon", "exact"),
        (AGE, {"query": "sum", "epsilon": 0}, "epsilon", "above 0"),
        (AGE, {"query": "sum", "epsilon": "0.0000001"}, "epsilon", "six decimals"),
        (AGE, {"query": "sum", "epsilon": 3}, "epsilon", "whole budget is 2"),
        (AGE, {"query": "sum", "epsilon": 1, "from": "1.2.2026"}, "from", '"2026-12-01"'),
        (AGE, {"query": "sum", "epsilon": 1, "to": "2026-02-30"}, "to", "no such day"),
        (AGE, {"query": "sum", "epsilon": 1, "to": 20260228}, "to", '"2026-12-01"'),
        (AGE, {"query": "sum", "epsilon": 1, "from": "2026-01-01"}, "from", "2026-01-10 to"),
        (AGE, {"query": "sum", "epsilon": 1, "from": "2026-02-02"}, "from", "2026-02-01 to 2026"),
        (AGE, {"query": "sum", "epsilon": 1, "to": "2026-02-27"}, "to", "to 2026-02-28"),
    ],
)
def test_a_request_is_refused_with_its_field_its_value_and_the_fix(
    collection_: Collection, request_: dict[str, object], field: str, says: str
) -> None:
    with pytest.raises(QueryError) as refused:
        price_query(request_, collection_)

    assert refused.value.field == field
    assert says in str(refused.value)


def test_an_end_before_the_beginning_is_refused() -> None:
    days = {"from": "2026-02-01", "to": "2026-01-31"}

    with pytest.raises(QueryError, match="after from = 2026-02-01"):
        price_query({"query": "sum", "epsilon": 1, **days}, AGE)


def test_a_public_number_is_not_sold() -> None:
    with pytest.raises(QueryError, match="costs nothing"):
        ask(collection(Boolean(), SUBSTITUTE), "count", month=1)


def test_what_would_be_too_large_is_refused() -> None:
    with pytest.raises(QueryError, match="at most 65,536"):
        ask(collection(whole(0, 100_000)), "histogram")
    with pytest.raises(QueryError, match="1,073,741,824"):
        ask(collection(Choice((0, 1 << 31))), "sum")


# -- sensitivities by brute force: every small database and every neighbour of it ------------------


Database = tuple[int, ...]  # the input of each unit, sorted

QUERIES: list[tuple[Boolean | Choice | Number, object]] = [
    (Choice(("a", "b", "c")), "histogram"),
    (Choice(("a", "b", "c")), {"count": ["a", "c"]}),
    (Choice(("a", "b", "c")), "count"),
    (Boolean(), "sum"),
    (Boolean(), "mean"),
    (whole(0, 3), "age >= 2"),
    (whole(0, 3), "sum"),
    (whole(2, 4), "sum"),
    (whole(-4, -2), "sum"),
    (whole(-1, 3), "sum"),
    (whole(-3, 1), "sum"),
    (whole(2, 4), "mean"),
    (whole(-1, 3), "mean"),
    (Choice((7, -2, 1)), "sum"),
    (Choice((7, -2, 1)), "mean"),
    (whole(2, 4), "variance"),
    (whole(-1, 3), "variance"),
]


#: sensitivities of these have tests of their own: of a score, of a total over time, of a threshold
OTHERWISE = {"most_frequent", "quantile", "quantile_point", "running_total", "strings"}


def test_every_query_that_adds_noise_to_numbers_is_enumerated() -> None:
    enumerated = {ask(collection(domain), query).query.kind for domain, query in QUERIES}

    assert enumerated | OTHERWISE == set(QUERY_TYPES)
    assert not enumerated & OTHERWISE


def databases(inputs: int) -> Iterator[Database]:
    for size in range(4):
        yield from combinations_with_replacement(range(inputs), size)


def neighbours(database: Database, inputs: int, adjacency: Adjacency) -> Iterator[Database]:
    for place in range(len(database)):
        rest = database[:place] + database[place + 1 :]
        if adjacency is ADD_REMOVE:
            yield rest
        else:
            yield from (tuple(sorted((*rest, other))) for other in range(inputs))


def true(question: PricedQuery, database: Database) -> list[list[int]]:
    counters: Counters = np.bincount(database, minlength=question.collection.inputs)
    released = draw_release(
        question, counters.astype(np.int64), noise=lambda exact, scale: list(exact)
    )
    return [list(part) for part in released.noised]


def farthest(question: PricedQuery, adjacency: Adjacency, power: int) -> list[int]:
    """The largest distance of each part over all pairs of neighbours: L1, or L2 squared."""
    inputs = question.collection.inputs
    found = [0] * len(question.parts)
    for database in databases(inputs):
        here = true(question, database)
        for neighbour in neighbours(database, inputs, adjacency):
            for part, (one, two) in enumerate(zip(here, true(question, neighbour), strict=True)):
                distance = sum(abs(a - b) ** power for a, b in zip(one, two, strict=True))
                found[part] = max(found[part], distance)
    return found


CASES = [
    (domain, query, month, adjacency)
    for domain, query in QUERIES
    for month in (None, 1)
    for adjacency in (ADD_REMOVE, SUBSTITUTE)
    if (query, month, adjacency) != ("count", 1, SUBSTITUTE)  # public: it is not sold
]


@pytest.mark.parametrize(("domain", "query", "month", "adjacency"), CASES, ids=str)
def test_no_neighbour_is_farther_than_the_sensitivity_and_one_is_as_far(
    domain: Boolean | Choice | Number, query: object, month: int | None, adjacency: Adjacency
) -> None:
    answers = None if month else 2  # of three: then n is withheld under either adjacency
    question = ask(collection(domain, adjacency, answers=answers), query, month=month)
    counts_all = [part.name == "count" and query == "count" for part in question.parts]
    claims = [[part.sensitivity, part.squared_sensitivity] for part in question.parts]

    for power in (1, 2):
        found = farthest(question, adjacency, power)
        for far, claimed, counts_everyone in zip(found, claims, counts_all, strict=True):
            # A substitute leaves the number of units alone: noise on it is for those they are.
            most = 0 if counts_everyone and adjacency is SUBSTITUTE else claimed[power - 1]
            assert far == most


def test_the_parts_of_a_question_share_its_epsilon() -> None:
    for domain, query in QUERIES:
        for adjacency in (ADD_REMOVE, SUBSTITUTE):
            question = ask(collection(domain, adjacency, answers=2), query, "0.7")

            assert sum(part.share for part in question.parts) == 1
