"""Query parameters: each is parsed once; a wrong one is refused with its name, value and fix."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from fractions import Fraction
from importlib import import_module

import click
import pytest
from click.testing import CliRunner

from veilcount_aggregator import queries
from veilcount_aggregator.operate.cli.query_source import struct_options
from veilcount_analysis.errors import QueryError
from veilcount_analysis.estimation import LookCount, View
from veilcount_analysis.query_params import QueryParams, params

from ..web.api.deployment_fixtures import Deployment
from .simulated_reports import compare, estimate, question, typed

Words = str | list[str]


def test_every_parameter_is_parsed() -> None:
    days, words = {"from_": "2026-11-01", "to": "2026-12-31"}, ["arm:A", "level:2"]
    read = question(**days, by="month", view="consistent", level="0.9", segment=words, series="abc")
    others = question(top="5", among="answered", looks="every", fakes="0.02")

    assert read == queries.EstimateQuery(
        first=date(2026, 11, 1),
        last=date(2026, 12, 31),
        by=queries.GroupBy.MONTH,
        view=View.CONSISTENT,
        level=0.9,
        segments=(("arm", "A"), ("level", "2")),
        series=("abc",),
    )
    assert others == queries.EstimateQuery(
        top=5, among=queries.Denominator.ANSWERED, looks=LookCount.EVERY, fakes=Fraction(1, 50)
    )
    assert question(page="2", size="10", values="").size == 10
    assert question(group=["g:1,2"]).groups == ("g:1,2",)


WRONG: list[tuple[dict[str, Words], str, str]] = [
    ({"from_": "1.12.2026"}, "from", "such as 2026-12-01"),
    ({"from_": "2026-02-30"}, "from", "no such day"),
    ({"from_": "2026-12-02", "to": "2026-12-01"}, "to", "not before from = 2026-12-02"),
    ({"by": "year"}, "by", "one of day, week, month, all"),
    ({"view": "cooked"}, "view", "one of raw, consistent"),
    ({"level": "95"}, "level", "between 0 and 1"),
    ({"level": "nan"}, "level", "give a number"),
    ({"level": ["0.9", "0.95"]}, "level", "give it once"),
    ({"segment": "A"}, "segment", "such as arm:A"),
    ({"segment": ["arm:A", "arm:B"]}, "segment", "each segment once"),
    ({"top": "0"}, "top", "give 1 to"),
    ({"top": "1000000"}, "top", "give 1 to"),
    ({"top": "ten"}, "top", "whole number"),
    ({"top": "3", "values": "dark"}, "values", "either this or top"),
    ({"values": "dark", "group": "g:dark"}, "group", "either this or values"),
    ({"top": "3", "page": "2"}, "page", "no pages"),
    ({"group": "g:dark", "view": "consistent"}, "view", "view=raw"),
    ({"simultaneous": "true"}, "simultaneous", "unknown parameter"),
    ({"page": "0"}, "page", "1 or more"),
    ({"size": "0"}, "size", "give 1 to"),
    ({"fakes": "1"}, "fakes", "such as 0.01"),
    ({"zzz": "1"}, "zzz", "give some of among"),
    ({"lvel": "0.9"}, "lvel", "did you mean level?"),
]


UNFIT: list[tuple[str, dict[str, Words], str, str]] = [
    ("theme", {"by": "week"}, "by", "a period of this collection is a month: give month or all"),
    ("once", {"by": "month"}, "by", "the whole campaign"),
    ("theme", {"to": "2026-09-30"}, "to", "the campaign is 2026-10-01 until before 2027-10-01"),
    ("theme", {"from_": "2027-10-01"}, "from", "the campaign is"),
    ("theme", {"segment": "plan:paid"}, "segment", "its segments are arm, level"),
    ("theme", {"segment": "arm:C"}, "segment", "give one of arm:A, arm:B"),
    ("once", {"segment": "arm:A"}, "segment", "it has no segments"),
    ("theme", {"series": "abc"}, "series", "6 digits or more"),
    ("theme", {"series": "000000"}, "series", "6 digits or more"),
    ("theme", {"values": "drak"}, "values", "did you mean dark"),
    ("theme", {"values": "purple"}, "values", "such as light, dark, system"),
    ("theme", {"group": "dark"}, "group", "such as warm:red,orange"),
    ("theme", {"group": ["g:dark", "g:light"]}, "group", "give a name and values"),
    ("theme", {"group": "g:drak"}, "group", "did you mean dark"),
    ("theme", {"among": "answered"}, "among", "presence is public"),
    ("theme", {"page": "2"}, "page", "the last page is 1"),
    ("plan", {"group": "theme"}, "group", "one of answer, plan"),
    ("plan", {"values": "dark"}, "values", '{"answer": "light", "plan": "free"}'),
    ("plan", {"values": '{"answer": "dark", "plan": "gold"}'}, "values", "give objects such as"),
    ("plan", {"values": '{"answer": "dark"}'}, "values", "give objects such as"),
    ("minutes", {"top": "3"}, "top", "of a number"),
    ("minutes", {"group": "g:1"}, "group", "of a number"),
    ("minutes", {"view": "consistent"}, "view", "view=raw"),
    ("minutes", {"page": "2"}, "page", "one page"),
    ("minutes", {"values": "0..10"}, "values", 'measure = "ranges"'),
    ("ranges", {"values": "10"}, "values", "such as 0..60"),
    ("ranges", {"values": "60..0"}, "values", "the lower number first"),
    ("spread", {"looks": "every"}, "looks", 'looks=one, or a collection with measure = "mean"'),
    ("curated", {}, "collection", "GET /v1/collections/curated/releases"),
]


COMPARED: list[tuple[dict[str, Words], str, str]] = [
    ({}, "a", "give a segment"),
    ({"a": "arm:A"}, "b", "give a segment"),
    ({"a": "arm:A", "b": "B"}, "b", "give a segment"),
    ({"a": "2026-13-01..", "b": "arm:B"}, "a", "no such day"),
    ({"a": "arm:A", "b": "arm:A"}, "b", "shares reports with a"),
    ({"a": "arm:A", "b": "level:1"}, "b", "shares reports with a"),
    ({"a": "..2026-11-30", "b": "2026-11-30.."}, "b", "shares reports with a"),
    ({"a": "arm:A", "b": "arm:B", "view": "raw"}, "view", "unknown parameter"),
]


PLANNED: list[tuple[dict[str, Words], str, str]] = [  # test_plan_refusals.py has what no plan meets
    ({"devices": "10", "epsilon": "1", "error": "0.1"}, "plan", "exactly two"),
    ({"devices": "ten", "epsilon": "1"}, "devices", "whole number"),
    ({"devices": "10", "epsilon": "17"}, "epsilon", "at most 16"),
    ({"devices": "10", "epsilon": "1", "trust": "me"}, "trust", "one of local"),
    ({"devices": "10", "epsilon": "1", "range": "5"}, "range", "such as 0..60"),
    ({"devices": "10", "epsilon": "1", "arms": "3"}, "arms", "give 1 or 2"),
    ({"devices": "10", "epsilon": "1", "weights": "0"}, "weights", "give 1 to 100"),
]


OWN: list[tuple[dict[str, Words], str, str]] = [
    ({"n": "0"}, "n", "give 1 to"),
    ({"delta": "1"}, "delta", "at least 1e-30"),
    ({"by": "day"}, "by", "unknown parameter"),
]
CALLS: dict[str, Callable[[Deployment, str, dict[str, Words]], object]] = {
    "estimate": lambda made, name, words: estimate(made, name, **words),
    "compare": lambda made, name, words: compare(made, name, **words),
    "plan": lambda _made, _name, words: queries.plan(
        queries.PlanQuery.parse(typed(**words)), date(2026, 12, 5)
    ),
    "budget": lambda _made, _name, words: queries.BudgetQuery.parse(typed(**words)),
    "contrast": lambda _made, _name, words: queries.ContrastQuery.parse(typed(**words)),
}
REFUSED = [
    *(("estimate", "theme", *row) for row in WRONG),
    *(("estimate", *row) for row in UNFIT),
    *(("compare", "theme", *row) for row in COMPARED),
    ("compare", "ranges", {"a": "arm:A", "b": "arm:B", "looks": "every"}, "looks", "looks=one"),
    *(("plan", "", *row) for row in PLANNED),
    *((query, "", *row) for query in ("budget", "contrast") for row in OWN),
]


@pytest.mark.parametrize("case", REFUSED, ids=str)
def test_a_wrong_parameter_is_named_with_its_fix(
    stocked: Deployment, case: tuple[str, str, dict[str, Words], str, str]
) -> None:
    query, name, words, field, fix = case
    with pytest.raises(QueryError) as refused:
        CALLS[query](stocked, name, words)

    assert refused.value.field == field
    assert fix in str(refused.value)


def test_more_figures_than_a_result_may_have_are_refused(
    stocked: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before any of them is computed; the limit itself is allowed."""
    module = import_module("veilcount_analysis.kinds.estimate")  # its function has its name
    monkeypatch.setattr(module, "MOST_ROWS", 1399)
    with pytest.raises(QueryError, match="1,400 figures, at most 1,399: ask for fewer values"):
        estimate(stocked, "word", size="700", by="month")

    assert len(estimate(stocked, "word", size="699", by="month").series[0].ranges) == 2


def test_an_unknown_name_is_refused_with_similar_ones(stocked: Deployment) -> None:
    with pytest.raises(queries.CollectionNotFound, match="did you mean theme") as refused:
        estimate(stocked, "thme")

    assert refused.value.near == ("theme",)


QUERIES = [
    *(queries.EstimateQuery, queries.CompareQuery, queries.PlanQuery),
    *(queries.BudgetQuery, queries.ContrastQuery),
]


@pytest.mark.parametrize("query", QUERIES)
def test_every_parameter_is_declared_once_with_type_and_description(
    query: type[QueryParams],
) -> None:
    read = query.parse({param.name: ["arm:A"] for param in params(query) if param.required})
    for param in params(query):
        assert param.description.endswith((".", "%."))
        assert param.schema["type"] in {"array", "boolean", "integer", "number", "string"}
        assert param.required or getattr(read, param.field) == param.default


@pytest.mark.parametrize("query", QUERIES)
def test_click_options_carry_every_parameter(query: type[QueryParams]) -> None:
    """As they were typed; `parse` checks them in the words of the HTTP API."""
    found: list[dict[str, list[str]]] = []

    @click.command()
    @struct_options(query)
    def command(params: dict[str, list[str]]) -> None:
        found.append(params)

    line: list[str] = []
    for param in params(query):
        word = str(param.choices[-1]) if param.choices else "1"
        line += [f"--{param.name}", *([] if param.kind is bool else [word])]
    CliRunner().invoke(command, line, catch_exceptions=False)

    assert set(found[0]) == {param.name for param in params(query)}
