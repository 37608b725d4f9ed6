"""Kinds of question: which parameters they take, and figures without a server."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, NoReturn, cast

import numpy as np
import pytest

from veilcount_analysis.errors import QueryError
from veilcount_analysis.kinds.estimate import SeriesData, estimate_series
from veilcount_analysis.kinds.estimate_query import EstimateQuery
from veilcount_analysis.kinds.kind import NOT_TAKEN, Kind, parameters
from veilcount_analysis.kinds.registry import KINDS, check_kinds, kind_of
from veilcount_analysis.kinds.scope import Scope
from veilcount_analysis.kinds.source import Tally
from veilcount_analysis.kinds.values import Values
from veilcount_analysis.mechanisms import estimate_shares
from veilcount_analysis.query_params import params
from veilcount_analysis.series.series import Series
from veilcount_analysis.simulation import simulate
from veilcount_analysis.simulation.simulated_figures import SimulationQuery
from veilcount_shared import Collection

from ..estimation.collection_fixtures import of_values, question

QUESTIONS = {
    "yes or no": "boolean = true",
    "values": "values = [1, 2]",
    "crossed": 'values = [1, 2]\ncross = {plan = ["free", "paid"]}',
    "mean": 'range = [0, 1]\nmeasure = "mean"',
    "distribution": 'range = [0, 1]\nmeasure = "distribution"',
    "ranges": 'range = [0, 1]\nmeasure = "ranges"',
    "strings": 'values = "open"',
    "features": 'features = {a = [0, 1], b = [0, 1]}\nmeasure = "moments"',
}
#: a value of each parameter that depends on the kind
VALUES: dict[str, list[str]] = {
    "view": ["consistent"],
    "page": ["2"],
    "looks": ["every"],
    "candidates": ["red"],
    "discover": ["true"],
    "top": ["2"],
    "group": ["a:1,2"],
    "values": ["1"],
    "regress": ["a"],
}
TODAY = date(2027, 6, 1)


@dataclass(frozen=True)
class Arrays:
    """The counters of a notebook."""

    counters: Any

    def tally(self, periods: range, cells: Sequence[int]) -> Tally:
        return Tally(self.counters)

    def is_over(self, period: int) -> bool:
        return True

    @property
    def searches(self) -> NoReturn:
        raise AssertionError("values are listed, so nothing is searched")


def test_each_question_has_the_kind_of_its_domain_and_measure() -> None:
    kinds = {type(kind_of(question(domain))) for domain in QUESTIONS.values()}

    assert len(kinds) == len(set(KINDS.values())) - 1, "a trend takes a shorter period"


def test_an_unknown_kind_is_an_error_and_never_taken_for_values() -> None:
    @dataclass(frozen=True)
    class Unknown:
        domain: object
        measure: None = None

    with pytest.raises(KeyError):
        kind_of(cast("Collection", Unknown(domain="several values")))


def test_a_kind_that_lacks_a_choice_is_refused_by_name() -> None:
    """Whether its sides are compared is one such choice, which nothing makes for it."""

    class Several(Kind[object, Tally]):
        panels = Values.panels
        read, figures, headline = Values.read, Values.figures, Values.headline

    with pytest.raises(TypeError, match=r"^Several: define comparison, name$"):
        check_kinds([*KINDS.values(), cast("type[Kind[Any, Any]]", Several)])


@pytest.mark.parametrize("name", VALUES)
@pytest.mark.parametrize("domain", QUESTIONS.values(), ids=QUESTIONS)
def test_a_parameter_that_a_kind_does_not_declare_is_refused(domain: str, name: str) -> None:
    kind, query = kind_of(question(domain)), EstimateQuery.parse({name: VALUES[name]})
    ((parameter, value),) = parameters(query)
    if parameter in kind.accepted_parameters:
        assert not kind.parameter_problem(parameter)
        return

    with pytest.raises(QueryError) as refused:
        kind.check(query)

    assert (refused.value.field, refused.value.value) == (name, value)
    assert refused.value.fix == kind.refused_parameters.get(parameter, NOT_TAKEN)


def test_of_several_refused_parameters_the_first_in_a_fixed_order_is_named() -> None:
    """View, looks and page come before what selects values."""
    kind: Kind[Any, Any] = kind_of(question(QUESTIONS["features"]))
    query = EstimateQuery.parse({"top": ["2"], "looks": ["every"], "view": ["consistent"]})

    with pytest.raises(QueryError, match=r"^view = "):
        kind.check(query)
    with pytest.raises(QueryError, match=r"^looks = "):
        kind.check(EstimateQuery.parse({"top": ["2"], "looks": ["every"]}))


def estimated(collection: Collection, counters: Any) -> Any:
    kind, query, series = kind_of(collection), EstimateQuery(), Series(collection)
    scope = Scope.from_query(series, query, TODAY)
    return estimate_series(kind, query, SeriesData.load(kind, Arrays(counters), query, scope))


def test_figures_come_from_arrays_without_a_server() -> None:
    collection = of_values(3)
    counters = simulate(collection, np.array([600, 300, 100]), np.random.default_rng(1))

    (estimate,) = estimated(collection, counters).ranges
    result = estimate.result
    shares: Any = estimate_shares(collection, counters)

    assert [figure.figure for figure in result.figures] == shares.frequency.tolist()
    assert [figure.low for figure in result.figures] == shares.low.tolist()
    assert result.n == 1000


@pytest.mark.parametrize("domain", ["values", "mean", "distribution", "ranges", "features"])
def test_what_a_kind_states_is_declared_and_has_a_panel(domain: str) -> None:
    collection = question(QUESTIONS[domain])
    kind: Kind[Any, Any] = kind_of(collection)
    series = estimated(collection, np.full(kind.handler.mechanism.counters, 200))
    figures = series.ranges[0].result.figures
    shown = {name for panel in kind.panels for name in panel.figures} | {"bucket"}  # in parts

    assert set(series.facts) == set(kind.facts)
    assert {figure.kind for figure in figures} <= shown
    assert kind.panels[0].rows(figures)


SIMULATIONS = list(dict.fromkeys(kind.simulation for kind in KINDS.values() if kind.simulation))


@pytest.mark.parametrize("query", SIMULATIONS, ids=lambda query: query.subject)
def test_a_simulation_needs_devices_and_refuses_the_options_of_other_kinds(
    query: type[SimulationQuery],
) -> None:
    others = {param.name for simulation in SIMULATIONS for param in params(simulation)}

    with pytest.raises(QueryError, match=r"^n = .*: give it once"):
        query.parse({})
    for option in sorted(others - {param.name for param in params(query)}):
        with pytest.raises(QueryError, match=rf"^{option} = "):
            query.parse({"n": ["10"], option: ["1"]})
    assert query.parse({"n": ["10"]}).n == 10
