"""What a page of a collection shows, as its address says it.

An address holds the parameters of an estimate and one more, `find`: part of a value's name. What it
leaves out is chosen here: intervals that hold together above five values, the top of a long list,
the longest stretches that still show how a share moves.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import pairwise
from urllib.parse import urlencode

from flask import url_for

from veilcount_shared import Collection
from veilcount_shared.domain import Boolean, Choice, Cross, Number

from ...errors import QueryError
from ...mechanisms import handler_of
from ...queries import EstimateQuery, GroupBy, Snapshot
from ...queries.domain_values import FEW, places_of, value_at
from ...queries.estimate import periods_of
from ...queries.query_params import single
from ...queries.time_ranges import WIDER, time_ranges
from ...series.series import Series
from ...text.result_columns import spelled
from .formatting import named
from .sample_adequacy import BAD, PLAIN, verdict

Given = Mapping[str, Sequence[str]]
Asked = dict[str, list[str]]

AT_ONCE = 5  # values, above which intervals hold together unless told
LONG = 40  # values, above which the largest are shown unless told
TOP = 25
FOUND = 50  # values that a search shows
DRAWN = 5  # values that are followed over time
STRETCHES = 40  # that a line over time has, unless told
PARTS = 8  # of a number's range, whose shares are shown
FIND = "find"
POOR = (BAD, PLAIN)  # too few answers, or none
TOGETHER = ("top", "values", "group", "page", FIND)  # ways to choose what is shown: one of them


@dataclass(frozen=True, slots=True)
class Address:
    """The page's own address: a collection's name, and what is asked."""

    name: str
    given: Given

    def to(self, **changes: str | Sequence[str] | None) -> str:
        """Return the address with some parameters changed, or left out (None)."""
        return _queried(url_for("pages.collection", name=self.name), changed(self.given, **changes))

    def also(self, name: str, value: str, known: Iterable[str]) -> str:
        """Return the address with one segment chosen anew, the others as they are."""
        kept = [each for each in self.given.get(name, ()) if each not in known]
        return self.to(**{name: [*kept, value] if value else kept})

    def chosen(self, **ways: str | None) -> str:
        """Return the address with another way to choose what is shown, in place of any."""
        return self.to(**{**dict.fromkeys(TOGETHER), **ways})

    def export(self, form: str, asked: Given) -> str:
        """Return where the answer to a question is had as a file."""
        return _queried(url_for("pages.collection_file", name=self.name, form=form), asked)


def _queried(path: str, given: Given) -> str:
    query = urlencode({key: list(words) for key, words in given.items() if words}, doseq=True)
    return f"{path}?{query}" if query else path


def changed(given: Given, **changes: str | Sequence[str] | None) -> Asked:
    """Return parameters, some of them changed; None or nothing leaves one out."""
    found = {name: [each for each in words if each] for name, words in given.items()}
    for name, words in changes.items():
        found[name] = [words] if isinstance(words, str) else list(words or ())
    return {name: words for name, words in found.items() if words}


@dataclass(frozen=True, slots=True)
class Shown:
    """The question that a series' figures answer, as parameters and read."""

    given: Asked
    question: EstimateQuery

    @classmethod
    def of(cls, collection: Collection, given: Given) -> Shown:
        """Read what is asked of a definition, and choose the rest; or refuse it."""
        asked = changed(given, by=None, find=None)
        find = single(given, FIND)
        if isinstance(collection.domain, Number):
            asked |= _of_number(collection, asked)
        else:
            asked |= {} if find is None else {"values": found(collection, find)}
            asked |= _of_values(collection, asked)
        return cls(asked, EstimateQuery.parse(asked))


def _of_number(collection: Collection, asked: Asked) -> Asked:
    if not handler_of(collection.mechanism).has_ranges or "values" in asked:
        return {}
    return {"values": parts_of(collection)}


def parts_of(collection: Collection) -> list[str]:
    """Return the equal parts of a number's range, as parameters."""
    domain = collection.domain
    assert isinstance(domain, Number)  # noqa: S101 - no other has a range
    step = (domain.high - domain.low) / PARTS
    ends = [float(domain.low + step * place) for place in range(PARTS + 1)]
    return [f"{low:.15g}..{high:.15g}" for low, high in pairwise(ends)]


def _of_values(collection: Collection, asked: Asked) -> Asked:
    more: Asked = {}
    size = collection.domain.size
    if size > LONG and not any(way in asked for way in TOGETHER):
        more["top"] = [str(TOP)]
    if "simultaneous" not in asked and size > AT_ONCE:
        more["simultaneous"] = ["true"]
    if "page" in asked and "size" not in asked:
        more["size"] = [str(LONG)]
    return more


def found(collection: Collection, find: str) -> list[str]:
    """Return the values whose names have a text in them, as parameters; or refuse it."""
    labels = _labels(collection)
    looked = find.casefold()
    within = [value for name, value in labels if looked in name.casefold()]
    if within:
        return within[:FOUND]
    names = [name for name, _ in labels]
    near = get_close_matches(find, names, 3) if len(names) <= FEW else []
    meant = f": did you mean {' or '.join(near)}?" if near else ": try a shorter part of it"
    raise QueryError(FIND, find, f"no value has this in its name{meant}")


def unknown(collection: Collection, given: Given) -> tuple[str, ...]:
    """Return what was asked for by its whole name, and is no value."""
    if isinstance(collection.domain, Number):
        return ()
    return places_of(collection, given.get("values", ())).unknown


def _labels(collection: Collection) -> list[tuple[str, str]]:
    """Return what each value is called on the page, and as a parameter."""
    domain = collection.domain
    if isinstance(domain, Cross):
        values = [value_at(collection, place) for place in range(domain.size)]
        return [(named(value), spelled(value)) for value in values]
    assert isinstance(domain, Boolean | Choice)  # noqa: S101 - no number has labels
    return [(spelled(label), spelled(label)) for label in domain.labels]


def check_cut(collection: Collection, given: Given) -> None:
    """Refuse a way to cut a range that a collection's periods do not have."""
    told, ways = single(given, "by"), WIDER[collection.unit][:-1]
    if told is not None and told not in ways:
        known = " or ".join(ways) or "none: all of it is one period"
        raise QueryError("by", told, f"give {known}")


def over_time(
    snapshot: Snapshot, series: Series, shown: Shown, given: Given, n: int
) -> GroupBy | None:
    """Return how a range is cut for a line over time; None: one stretch is all there is.

    Unless told, as finely as a period allows, but into no more stretches than can be read, each
    with answers enough on average.
    """
    ways = WIDER[series.collection.unit][:-1]
    told = single(given, "by")
    if told is not None:
        return GroupBy(told) if told in ways else None
    periods = periods_of(snapshot, series, shown.question)
    for by in ways:
        many = len(time_ranges(series, periods, by, snapshot.today))
        if many <= STRETCHES and verdict(series.collection, n // many).tone not in POOR:
            return by
    return ways[-1] if ways else None
