"""The pages of a large estimate, put together; their reports are those of one moment."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Protocol

Document = dict[str, Any]

MOST_FIGURES = 50_000  # in one response: half of what an aggregator sends
TRIES = 3
#: figures of which each page has those of its values; the others are on every page
PAGED = ("share", "raked")
#: parameters that select values
SELECTIONS = frozenset({"top", "values", "group", "candidates", "discover", "page", "size"})


class Fetch(Protocol):
    """Returns an estimate; with a page and a size, that page of its values."""

    def __call__(self, **page: int) -> Document:
        """Return it from the server or the store."""


class Moved(Exception):
    """Reports arrived between two pages: they are not of the same moment."""

    def __init__(self) -> None:
        super().__init__(
            "reports arrived between all pages: give `to`, a day before the open period"
        )


def all_values(fetch: Fetch, parameters: Collection[str]) -> Document:
    """Return an estimate with all its values, if no parameter selects some."""
    first = fetch()
    if not SELECTIONS.isdisjoint(parameters) or all(
        _pages(series) == 1 for series in first["series"]
    ):
        return first
    size = max(1, MOST_FIGURES // sum(len(series["ranges"]) for series in first["series"]))
    for _ in range(TRIES):
        try:
            return _fetch_once(size, fetch)
        except Moved as moved:
            last = moved
    raise last


def _fetch_once(size: int, fetch: Fetch) -> Document:
    whole = fetch(page=1, size=size)
    pages = max(_pages(series) for series in whole["series"])
    for number in range(2, pages + 1):
        later = fetch(page=number, size=size)["series"]
        page = {series["fingerprint"]: series for series in later}
        for series in whole["series"]:
            if number <= _pages(series):
                _append(series, page.get(series["fingerprint"]))
    for series in whole["series"]:
        if _pages(series) > 1:
            series["facts"]["pages"] = 1
    return whole


def _pages(series: Document) -> int:
    return int(series["facts"].get("pages", 1))


def _append(series: Document, page: Document | None) -> None:
    """Add the values of a later page, which has the same time ranges and the same reports."""
    if page is None or _moment(page) != _moment(series):
        raise Moved
    for time_range, more in zip(series["ranges"], page["ranges"], strict=True):
        figures = time_range["figures"]
        paged = [row for kind in PAGED for part in (time_range, more) for row in _rows(part, kind)]
        time_range["figures"] = paged + [row for row in figures if row["kind"] not in PAGED]


def _rows(time_range: Document, kind: str) -> list[Document]:
    return [figure for figure in time_range["figures"] if figure["kind"] == kind]


def _moment(series: Document) -> list[tuple[str, int]]:
    return [(time_range["from"], time_range["n"]) for time_range in series["ranges"]]
