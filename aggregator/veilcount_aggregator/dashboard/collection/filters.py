"""The options of the estimates tab, as links: each view has its address."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from veilcount_shared import Collection
from veilcount_shared.collection import Model
from veilcount_shared.domain import Cross, Number

from ...estimation import LookCount, View
from ...mechanisms import handler_of
from ...queries import Denominator, EstimateQuery, EstimateResult, GroupBy, Snapshot
from ...queries.categorical_results import presence_is_hidden
from ...queries.domain_values import part_names
from ...queries.time_ranges import WIDER
from ...series.series import Series
from ...text.result_columns import spelled
from ..formatting import fake_share, level
from .url_state import AT_ONCE, LONG, TOP, PageAddress

LEVELS = ("0.9", "0.95", "0.99")
FAKES = ("0", "0.001", "0.01", "0.05")
SHOWN_DIGITS = 8

Link = tuple[str, str, bool]  # its text, its address, whether it is current


@dataclass(frozen=True, slots=True)
class Filter:
    """A choice between links."""

    label: str
    links: tuple[Link, ...]


def filters(
    at: PageAddress, series: Sequence[Series], newest: Collection, query: EstimateQuery
) -> Iterator[Filter]:
    """Yield the filters of a collection."""
    if not isinstance(newest.domain, Number):
        yield from _of_values(at, newest, query)
    yield _level(at, query)
    if not handler_of(newest.mechanism).has_histogram:
        yield _looks(at, query)
    yield _fakes(at, query)
    if presence_is_hidden(newest):
        yield _among(at, query)
    yield from _segments(at, newest, query)
    if len(series) > 1:
        yield _series(at, series, query)


def _of_values(at: PageAddress, newest: Collection, query: EstimateQuery) -> Iterator[Filter]:
    if isinstance(newest.domain, Cross):
        yield _groups(at, newest.domain, query)
    if newest.domain.size > LONG:
        yield _list(at, newest.domain.size, query)
    if not query.groups:
        yield Filter(
            "View",
            (
                ("raw", at.to(view=None), query.view is View.RAW),
                (
                    "consistent",
                    at.to(view=View.CONSISTENT.value),
                    query.view is View.CONSISTENT,
                ),
            ),
        )
    yield _together(at, newest.domain.size, query)


def _groups(at: PageAddress, domain: Cross, query: EstimateQuery) -> Filter:
    names = part_names(domain)
    parts = tuple(
        (f"by {each}", at.with_selection(group=each, view=None), query.groups == (each,))
        for each in names
    )
    return Filter("Show", (("all together", at.with_selection(), not query.groups), *parts))


def _list(at: PageAddress, size: int, query: EstimateQuery) -> Filter:
    paged = not (query.top or query.values or query.groups)
    return Filter(
        "Values",
        (
            (f"the {TOP} largest", at.with_selection(), query.top == TOP),
            (f"all {size:,}, in pages", at.with_selection(page="1"), paged),
        ),
    )


def _together(at: PageAddress, size: int, query: EstimateQuery) -> Filter:
    usual = size > AT_ONCE
    on = query.is_simultaneous
    return Filter(
        "Intervals",
        (
            ("individual", at.to(simultaneous="false" if usual else None), not on),
            ("simultaneous", at.to(simultaneous=None if usual else "true"), on),
        ),
    )


def _level(at: PageAddress, query: EstimateQuery) -> Filter:
    return Filter(
        "Level",
        tuple(
            (
                f"{float(each) * 100:g} %",
                at.to(level=None if each == "0.95" else each),
                query.level == float(each),
            )
            for each in LEVELS
        ),
    )


def _looks(at: PageAddress, query: EstimateQuery) -> Filter:
    return Filter(
        "Intervals valid",
        tuple(
            (
                each.valid.removeprefix("valid "),
                at.to(looks=None if each is LookCount.ONE else each.value),
                query.looks is each,
            )
            for each in LookCount
        ),
    )


def _fakes(at: PageAddress, query: EstimateQuery) -> Filter:
    return Filter(
        "Fake reports",
        tuple(
            (
                fake_share(float(each)) if float(each) else "not shown",
                at.to(fakes=None if each == "0.01" else each),
                float(query.fakes) == float(each),
            )
            for each in FAKES
        ),
    )


def _among(at: PageAddress, query: EstimateQuery) -> Filter:
    texts = {Denominator.ALL: "of all devices", Denominator.ANSWERED: "of those who answered"}
    return Filter(
        "Shares",
        tuple(
            (
                words,
                at.to(among=None if each is Denominator.ALL else each.value),
                query.among is each,
            )
            for each, words in texts.items()
        ),
    )


def _segments(at: PageAddress, newest: Collection, query: EstimateQuery) -> Iterator[Filter]:
    chosen = dict(query.segments)
    for name, labels in newest.segments:
        words = [spelled(label) for label in labels]
        known = [f"{name}:{each}" for each in words]
        each_one = tuple(
            (each, at.with_segment("segment", f"{name}:{each}", known), chosen.get(name) == each)
            for each in words
        )
        yield Filter(
            name, (("all", at.with_segment("segment", "", known), name not in chosen), *each_one)
        )


def _series(at: PageAddress, series: Sequence[Series], query: EstimateQuery) -> Filter:
    each_one = tuple(
        (
            each.fingerprint[:SHOWN_DIGITS],
            at.to(series=each.fingerprint[:SHOWN_DIGITS]),
            any(each.fingerprint.startswith(given) for given in query.series),
        )
        for each in series
    )
    return Filter("Definition", (("side by side", at.to(series=None), not query.series), *each_one))


def other_definitions(
    at: PageAddress, snapshot: Snapshot, series: Sequence[Series], answer: EstimateResult
) -> list[tuple[str, str]]:
    """Return definitions with reports that cannot be shown together with these, with addresses.

    They have other values, other segments or other days.
    """
    shown = {each.fingerprint for each in answer.series}
    return [
        (each.fingerprint[:SHOWN_DIGITS], PageAddress(at.name, {}).to(series=each.fingerprint))
        for each in series
        if each.fingerprint not in shown
        and each.collection.model is Model.LOCAL
        and snapshot.reports(each)
    ]


def time_range_filter(at: PageAddress, newest: Collection, by: GroupBy | None) -> Filter | None:
    """Return the choice of time ranges; None: there is at most one."""
    known = WIDER[newest.unit][:-1]
    if by is None or len(known) < 2:  # noqa: PLR2004 - a choice has two
        return None
    return Filter("By", tuple((each.value, at.to(by=each.value), each is by) for each in known))


def summary(newest: Collection, query: EstimateQuery) -> str:
    """Return the current view in a line."""
    intervals = "simultaneous" if query.is_simultaneous else "individual"
    number = isinstance(newest.domain, Number)
    words = [
        *([] if number else [f"{query.view} view", f"{intervals} intervals"]),
        f"at {level(query.level)}",
        *([] if query.looks is LookCount.ONE else [query.looks.valid]),
        f"{fake_share(float(query.fakes))} fake reports assumed"
        if query.fakes
        else "no fake reports",
        *(f"{name}: {value}" for name, value in query.segments),
    ]
    return ", ".join(words)
