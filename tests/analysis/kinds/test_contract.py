"""Each row of the registries of kinds keeps one contract, under every trust model."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from veilcount_analysis.audit.audit_case import unaudited_reason
from veilcount_analysis.errors import QueryError
from veilcount_analysis.kinds.estimate import SeriesData, estimate_series
from veilcount_analysis.kinds.estimate_query import EstimateQuery
from veilcount_analysis.kinds.kind import NOT_TAKEN, Kind, parameters
from veilcount_analysis.kinds.registry import KINDS, kind_of
from veilcount_analysis.kinds.scope import Scope
from veilcount_analysis.kinds.source import CandidateSearch, Tally
from veilcount_analysis.mechanisms.handler import tally
from veilcount_analysis.releases import price_query
from veilcount_analysis.releases.query import query_options
from veilcount_analysis.releases.release import part_noise
from veilcount_analysis.series.series import Series
from veilcount_client.testing import SeededRandomSource
from veilcount_shared import Collection
from veilcount_shared.domain import Boolean, Choice, Cross, Features, Number, OpenStrings, Questions
from veilcount_shared.enums import Measure, Model
from veilcount_shared.errors import DefinitionError
from veilcount_shared.kinds import KINDS as DEVICE_KINDS
from veilcount_shared.kinds import TableContext, parse_domain

from ...properties.definition_harness import no_values_file, parse_definition
from ...properties.hostile_values import ODD

Row = tuple[type, Measure | None]

EXAMPLES: Mapping[Row, str] = {
    (Choice, None): 'values = ["a", "b", "c"]',
    (Boolean, None): "boolean = true",
    (Cross, None): 'boolean = true\ncross = {plan = ["free", "paid"]}',
    (Number, None): "range = [0, 10]",
    (Number, Measure.MEAN): 'range = [0, 10]\nmeasure = "mean"',
    (Number, Measure.DISTRIBUTION): 'range = [0, 10]\nmeasure = "distribution"',
    (Number, Measure.RANGES): 'range = [0, 10]\nmeasure = "ranges"',
    (Features, Measure.MOMENTS): 'features = {a = [0, 120], b = [0, 60]}\nmeasure = "moments"',
    (Boolean, Measure.TREND): 'boolean = true\nmeasure = "trend"\nchanges = 3',
    (OpenStrings, None): 'values = "open"',
    (Questions, None): 'questions = {a = ["x", "y"], b = [1, 2, 3]}\ntables = true',
}
KEYS = {
    Model.LOCAL: "",
    Model.SHUFFLED: "batch = {epsilon = 0.5, delta = 0.000001, covers = 9}",
    Model.CENTRAL: "delta = 0.000001",
}
CELLS = [(row, model) for row in DEVICE_KINDS for model in Model]
REFUSED = [cell for cell in CELLS if cell[1] in DEVICE_KINDS[cell[0]].unsupported_models]
ALLOWED = [cell for cell in CELLS if cell not in REFUSED]
LOCAL, CENTRAL = (
    [row for row, allowed in ALLOWED if allowed is model] for model in (Model.LOCAL, Model.CENTRAL)
)
#: a value of each parameter that depends on the kind
TEXTS = "view=consistent page=2 looks=every candidates=red discover=true top=2 group=a:1,2 values=1"
VALUES = dict(text.split("=") for text in [*TEXTS.split(), "regress=a", "pair=a,b"])
UNTIL, TODAY = "until = 2027-04-01", date(2027, 6, 1)


def row_name(item: Any) -> str:
    return f"{item[0].__name__}-{item[1]}" if isinstance(item, tuple) else str(item)


def define(row: Row, model: Model = Model.LOCAL) -> Collection:
    keys = [KEYS[model], UNTIL]
    if model is Model.SHUFFLED and DEVICE_KINDS[row].absent_fix:
        keys.append('presence = "public"')
    return parse_definition("\n".join([EXAMPLES[row], f'model = "{model}"', *keys]))


def reports(collection: Collection) -> list[int]:
    if not collection.kind.fresh:  # a trend: each message that there is
        return list(range(collection.randomizer.messages))
    randomness, values = SeededRandomSource(1), [*ODD, *collection.domain.extremes] * 4
    return [collection.message(value, randomness) for value in values]


def shown_figures(kind: Kind[Any, Any]) -> set[str]:
    """What the panels of a kind show; buckets are drawn as one curve."""
    return {name for panel in kind.panels for name in panel.figures} | {"bucket"}


def arrays(counters: Any) -> Any:
    """The source of a notebook, which has searched nothing."""
    nothing = CandidateSearch((), np.zeros(0, np.int64), 0, 0, 1e-9)
    searches = SimpleNamespace(known=lambda: nothing)
    return SimpleNamespace(
        tally=lambda *_: Tally(counters),
        counters_by_period=lambda periods, _: np.stack([counters for _ in periods]),
        searches=searches,
        is_over=lambda _: True,
    )


def test_every_row_has_both_halves_and_an_example() -> None:
    assert list(EXAMPLES) == list(DEVICE_KINDS)
    assert set(DEVICE_KINDS) == set(KINDS)


@pytest.mark.parametrize(("row", "model"), REFUSED, ids=row_name)
def test_an_unsupported_model_is_refused_with_its_sentence(row: Row, model: Model) -> None:
    key, fix = DEVICE_KINDS[row].unsupported_models[model]
    with pytest.raises(DefinitionError, match=re.escape(fix)) as caught:
        define(row, model)

    assert caught.value.key == key


@pytest.mark.parametrize(("row", "model"), ALLOWED, ids=row_name)
def test_an_example_parses_into_its_kind_and_is_declared_again(row: Row, model: Model) -> None:
    collection = define(row, model)
    domain, cells = collection.domain, collection.kind.true_cells(collection.domain)
    context = TableContext(collection.app, collection.name, collection.start, no_values_file)

    assert (collection.kind, type(kind_of(collection))) == (DEVICE_KINDS[row], KINDS[row])
    assert parse_domain(domain.declaration(), context).canonical() == domain.canonical()
    assert (cells is None) == (row not in CENTRAL), "counters where a curator is supported"
    assert collection.epsilon_user == (4 if collection.kind.fresh else 1), "drawn once, priced once"


@pytest.mark.parametrize(("row", "model"), ALLOWED, ids=row_name)
def test_any_value_becomes_a_valid_message_of_one_width(row: Row, model: Model) -> None:
    collection = define(row, model)
    messages = reports(collection)
    packed = list(map(collection.pack, messages))

    assert {len(body) for body in packed} == {collection.message_bytes}
    assert list(map(collection.unpack, packed)) == messages


@pytest.mark.parametrize("row", LOCAL, ids=row_name)
def test_reports_become_figures_without_a_server(row: Row) -> None:
    collection, query = define(row), EstimateQuery()
    kind, source = kind_of(collection), arrays(tally(collection, reports(collection)))
    scope = Scope.from_query(Series(collection), query, TODAY)
    series = estimate_series(kind, query, SeriesData.load(kind, source, query, scope))
    (estimate,) = series.ranges
    result, adequacy = estimate.result, estimate.adequacy

    assert result.n > 0
    assert all((series.poisoning_test, adequacy, kind.quantity.variance(Fraction(1))))
    assert bool(result.figures) == (row != (OpenStrings, None)), "no string was searched for"
    assert set(series.facts) <= set(kind.facts), "declared, so that OpenAPI lists them"
    assert {figure.kind for figure in result.figures} <= shown_figures(kind)
    assert isinstance(kind.comparison, str) or kind.comparison.problem(kind.comparison) == ""
    if kind.simulation is not None:
        assert kind.simulate({"n": ["100000"]}, np.random.default_rng(1)).n == 100_000


@pytest.mark.parametrize("row", LOCAL, ids=row_name)
def test_the_epsilon_of_a_kind_is_audited(row: Row) -> None:
    collection = define(row)
    finding = kind_of(collection).audit(SeededRandomSource(3)).run(samples=2000, alpha=1e-6)

    assert not unaudited_reason(collection)
    assert (finding.claimed, finding.broken) == (1.0, False)


@pytest.mark.parametrize("row", CENTRAL, ids=row_name)
def test_each_query_that_a_form_offers_is_answered_from_the_counters(row: Row) -> None:
    collection = define(row, Model.CENTRAL)
    counters = tally(collection, reports(collection))
    for option in query_options(collection).values():
        written = option.written(option.example)
        priced = price_query({"query": written, "epsilon": "0.5"}, collection)
        table = np.tile(counters, (len(priced.periods), 1)) if priced.query.by_period else counters
        widths = [part.half_width for part in part_noise(priced, 0.95)]
        values, part = priced.query.part_values(collection, table, (), widths), priced.parts[0]

        assert len(values) == part.size or (part.has_threshold and len(values) <= 2 * len(ODD) * 8)
        assert any(values) or part.selection, option.name


@pytest.mark.parametrize("row", LOCAL, ids=row_name)
def test_each_parameter_that_a_kind_does_not_take_is_refused_by_name(row: Row) -> None:
    kind = kind_of(define(row))
    for name, text in VALUES.items():
        query = EstimateQuery.parse({name: [text]})
        ((parameter, value),) = parameters(query)
        if fix := kind.parameter_problem(parameter):
            with pytest.raises(QueryError, match=rf"^{name} = ") as refused:
                kind.check(query)

            assert (refused.value.value, refused.value.fix) == (value, fix)
        taken = parameter in kind.accepted_parameters

        assert fix == ("" if taken else kind.refused_parameters.get(parameter, NOT_TAKEN))


def test_of_several_refused_parameters_the_first_in_a_fixed_order_is_named() -> None:
    """View, looks and page come before what selects values."""
    kind = kind_of(define((Features, Measure.MOMENTS)))
    texts = {"top": ["2"], "looks": ["every"], "view": ["consistent"]}
    for name in ("view", "looks", "top"):
        with pytest.raises(QueryError, match=rf"^{name} = "):
            kind.check(EstimateQuery.parse(texts))
        del texts[name]


def test_what_has_no_row_is_never_taken_for_values(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(KINDS, (Boolean, None))
    with pytest.raises(KeyError, match="Boolean"):
        kind_of.__wrapped__(define((Boolean, None)))


@pytest.mark.parametrize("method", sorted(Kind.__abstractmethods__))
def test_a_kind_without_a_method_fails_by_the_name_of_both(
    method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    planted: Any = type("Planted", (Kind,), dict.fromkeys(Kind.__abstractmethods__ - {method}))
    monkeypatch.setitem(KINDS, (Boolean, None), planted)
    with pytest.raises(TypeError, match=rf"Planted.*{method}"):
        kind_of.__wrapped__(define((Boolean, None)))
