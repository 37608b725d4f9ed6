"""The state of the estimates tab in its address, and the defaults of what the address leaves out.

An address has the parameters of an estimate, `find`, a part of a value's name, and `over_time`, the
view of the time series. By default
a long list shows its largest values, and a time series has periods that are long enough for an
adequate sample.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any
from urllib.parse import urlencode

from flask import url_for

from veilcount_analysis.errors import QueryError
from veilcount_analysis.estimation import View
from veilcount_analysis.kinds.kind import NOT_TAKEN, Kind
from veilcount_analysis.kinds.labels import FEW, value_at
from veilcount_analysis.kinds.registry import kind_of
from veilcount_analysis.kinds.sample_adequacy import LISTED, sample_adequacy
from veilcount_analysis.kinds.scope import periods_of
from veilcount_analysis.kinds.smoothing import smoothing_problem
from veilcount_analysis.kinds.time_ranges import WIDER, time_ranges
from veilcount_analysis.query_params import Parameters, single
from veilcount_analysis.series.series import Series
from veilcount_analysis.text.result_columns import spelled, value_name
from veilcount_shared import Collection

from ....queries import EstimateQuery, GroupBy, Tallies

ParameterDict = dict[str, list[str]]

TOP = 25
PAGE = 40  # values of a page of a long list
MAX_FOUND = 50  # values that a search shows
DRAWN = 6  # values of a time series
MAX_TIME_RANGES = 40  # of a time series, by default
FIND = "find"
OVER_TIME = "over_time"  # the view of a time series
SELECTIONS = ("top", "values", "group", "candidates", "discover", "page", FIND)  # exclusive


@dataclass(frozen=True, slots=True)
class PageAddress:
    """The address of the tab: a collection's name and the parameters."""

    name: str
    parameters: Parameters

    def to(self, **changes: str | Sequence[str] | None) -> str:
        """Return the address with some parameters changed, or left out (None)."""
        return _queried(
            url_for("pages.collection", name=self.name), changed(self.parameters, **changes)
        )

    def with_segment(self, value: str, known: Iterable[str]) -> str:
        """Return the address with one of the known segments changed, or left out."""
        kept = [segment for segment in self.parameters.get("segment", ()) if segment not in known]
        return self.to(segment=[*kept, value] if value else kept)

    def with_selection(self, **changes: str | None) -> str:
        """Return the address with another selection of values in place of the present one."""
        return self.to(**{**dict.fromkeys(SELECTIONS), **changes})

    def export(self, form: str, parameters: Parameters) -> str:
        """Return the address of a result as a file."""
        return _queried(url_for("pages.collection_file", name=self.name, form=form), parameters)


def _queried(path: str, parameters: Parameters) -> str:
    query = urlencode({key: list(words) for key, words in parameters.items() if words}, doseq=True)
    return f"{path}?{query}" if query else path


def changed(parameters: Parameters, **changes: str | Sequence[str] | None) -> ParameterDict:
    """Return parameters, some of them changed; None or nothing leaves one out."""
    words_by_name = {name: [word for word in words if word] for name, words in parameters.items()}
    for name, words in changes.items():
        words_by_name[name] = [words] if isinstance(words, str) else list(words or ())
    return {name: words for name, words in words_by_name.items() if words}


@dataclass(frozen=True, slots=True)
class ShownQuery:
    """The query of the page, as parameters and parsed."""

    parameters: ParameterDict
    query: EstimateQuery

    @classmethod
    def parse(cls, collection: Collection, parameters: Parameters) -> ShownQuery:
        """Parse the parameters, with defaults for the rest."""
        kind, query = kind_of(collection), changed(parameters, by=None, find=None, over_time=None)
        find = single(parameters, FIND)
        if find is not None:
            if not kind.searchable:
                raise QueryError(FIND, find, NOT_TAKEN)
            query["values"] = found(collection, find)
        query |= _defaults(kind, query)
        return cls(query, EstimateQuery.parse(query))


def _defaults(kind: Kind[Any, Any], query: ParameterDict) -> ParameterDict:
    """Return the default values, or `top` and `size`, of a query without them."""
    more: ParameterDict = {}
    if kind.default_values and "values" not in query:
        more["values"] = list(kind.default_values)
    is_long = kind.accepts("top") and kind.domain.size > LISTED
    if is_long and not any(name in query for name in SELECTIONS):
        more["top"] = [str(TOP)]
    if kind.accepts("page") and "page" in query and "size" not in query:
        more["size"] = [str(PAGE)]
    return more


def found(collection: Collection, find: str) -> list[str]:
    """Return the values whose names have a text in them, as parameters; or refuse it."""
    labels = _labels(collection)
    within = [value for name, value in labels if find.casefold() in name.casefold()]
    if within:
        return within[:MAX_FOUND]
    names = [name for name, _ in labels]
    near = get_close_matches(find, names, 3) if len(names) <= FEW else []
    meant = f": did you mean {' or '.join(near)}?" if near else ": try a shorter part of it"
    raise QueryError(FIND, find, f"no value has this in its name{meant}")


def _labels(collection: Collection) -> list[tuple[str, str]]:
    """Return the name of each value on the page, and its spelling as a parameter."""
    values = (value_at(collection, place) for place in range(collection.domain.size))
    return [(value_name(value), spelled(value)) for value in values]


def check_time_range(collection: Collection, parameters: Parameters) -> None:
    """Refuse a time range that is shorter than a collection's periods."""
    by, known = single(parameters, "by"), WIDER[collection.unit][:-1]
    if by is not None and by not in known:
        fix = " or ".join(known) or "none: there is only one period"
        raise QueryError("by", by, f"give {fix}")


def time_series_view(
    snapshot: Tallies, series: Series, shown: ShownQuery, parameters: Parameters, by: GroupBy
) -> tuple[View, bool]:
    """Return the view of a time series, and whether it can be smoothed."""
    periods = periods_of(series, shown.query, snapshot.today)
    ranges = time_ranges(series, periods, by, snapshot.today)
    smoothable = not smoothing_problem(kind_of(series.collection), ranges)
    wanted = single(parameters, OVER_TIME) == View.SMOOTH and smoothable
    return (View.SMOOTH if wanted else View.RAW), smoothable


def time_ranges_shown(
    snapshot: Tallies, series: Series, shown: ShownQuery, parameters: Parameters, n: int
) -> GroupBy | None:
    """Return the time ranges of a time series; None: there is only one.

    By default the shortest that can be read, with an adequate sample on average.
    """
    ways = WIDER[series.collection.unit][:-1]
    wanted = single(parameters, "by")
    if wanted is not None:
        return GroupBy(wanted) if wanted in ways else None
    periods = periods_of(series, shown.query, snapshot.today)
    model = kind_of(series.collection).error_model
    for by in ways:
        many = len(time_ranges(series, periods, by, snapshot.today))
        if many <= MAX_TIME_RANGES and sample_adequacy(model, n // many).usable:
            return by
    return ways[-1] if ways else None
