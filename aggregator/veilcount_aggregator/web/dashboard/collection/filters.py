"""The options of the estimates tab, as links: each view has its address."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from veilcount_analysis.estimation import LookCount, View
from veilcount_analysis.kinds.kind import Kind
from veilcount_analysis.kinds.registry import kind_of
from veilcount_analysis.kinds.sample_adequacy import LISTED
from veilcount_analysis.kinds.time_ranges import WIDER
from veilcount_analysis.series.series import Series
from veilcount_analysis.text.number_format import fake_share, level
from veilcount_analysis.text.result_columns import spelled
from veilcount_shared import Collection

from ....queries import Denominator, EstimateQuery, EstimateResult, GroupBy, Snapshot
from .url_state import OVER_TIME, TOP, PageAddress

LEVELS = {part: f"{float(part) * 100:g} %" for part in ("0.9", "0.95", "0.99")}
FAKES = {"0": "not shown"} | {part: fake_share(float(part)) for part in ("0.001", "0.01", "0.05")}
SMOOTHING = {View.RAW.value: "each from its own reports", View.SMOOTH.value: "smoothed over time"}
LOOKS = {count.value: count.valid.removeprefix("valid ") for count in LookCount}
AMONG = {
    Denominator.ALL.value: "of all devices",
    Denominator.ANSWERED.value: "of those who answered",
}
SHOWN_DIGITS = 8  # of a fingerprint

Link = tuple[str, str, bool]  # its text, its address, whether it is current
Filter = tuple[str, tuple[Link, ...]]  # a label, and the links to choose between


def filters(
    at: PageAddress, series: Sequence[Series], newest: Collection, query: EstimateQuery
) -> Iterator[Filter]:
    """Yield the filters of a collection."""
    kind = kind_of(newest)
    yield from _value_filters(at, kind, query)
    yield _parameter(at, "Level", "level", LEVELS, f"{query.level:g}", default="0.95")
    if kind.accepts("looks=every"):
        yield _parameter(at, "Intervals valid", "looks", LOOKS, query.looks, default=LookCount.ONE)
    yield _parameter(at, "Fake reports", "fakes", FAKES, f"{float(query.fakes):g}", default="0.01")
    if newest.has_absent:
        yield _parameter(at, "Shares", "among", AMONG, query.among, default=Denominator.ALL)
    yield from _segments(at, newest, query)
    if kind.accepts("regress"):
        texts = {"": "nothing"} | {name: name for name in kind.domain.names}
        yield _parameter(at, "Explain by the others", "regress", texts, query.regress or "")
    if kind.accepts("pair"):
        pairs = {",".join(names): " and ".join(names) for names in kind.domain.pairs}
        yield _parameter(at, "Questions", "pair", {"": "all"} | pairs, query.pair or "")
    if len(series) > 1:
        known = [one_series.fingerprint[:SHOWN_DIGITS] for one_series in series]
        digits = query.series[0][:SHOWN_DIGITS] if query.series else ""
        shown = next(
            (fingerprint for fingerprint in known if digits and fingerprint.startswith(digits)), ""
        )
        texts = {"": "side by side"} | {fingerprint: fingerprint for fingerprint in known}
        yield _parameter(at, "Definition", "series", texts, shown)


def _parameter(
    at: PageAddress,
    label: str,
    name: str,
    texts: Mapping[str, str],
    current: str,
    *,
    default: str = "",
) -> Filter:
    """Return the choice of a parameter's value; an address leaves out the default."""
    return (
        label,
        tuple(
            (text, at.to(**{name: None if value == default else value}), value == current)
            for value, text in texts.items()
        ),
    )


def _value_filters(at: PageAddress, kind: Kind[Any, Any], query: EstimateQuery) -> Iterator[Filter]:
    parts = tuple(
        (f"by {name}", at.with_selection(group=name, view=None), query.groups == (name,))
        for name in kind.groupings
    )
    if parts:
        yield ("Show", (("all together", at.with_selection(), not query.groups), *parts))
    if kind.accepts("page") and (size := kind.domain.size) > LISTED:
        paged = not (query.top or query.values or query.groups)
        largest = (f"the {TOP} largest", at.with_selection(), query.top == TOP)
        yield ("Values", (largest, (f"all {size:,}, in pages", at.with_selection(page="1"), paged)))
    if kind.accepts("view=consistent") and not query.groups:
        texts = {view.value: view.value for view in (View.RAW, View.CONSISTENT)}
        yield _parameter(at, "View", "view", texts, query.view, default=View.RAW)


def _segments(at: PageAddress, newest: Collection, query: EstimateQuery) -> Iterator[Filter]:
    chosen = dict(query.segments)
    for name, labels in newest.segments:
        values = [spelled(label) for label in labels]
        known = [f"{name}:{value}" for value in values]
        everyone = ("all", at.with_segment("", known), name not in chosen)
        each_one = (
            (value, at.with_segment(segment, known), chosen.get(name) == value)
            for value, segment in zip(values, known, strict=True)
        )
        yield (name, (everyone, *each_one))


def other_definitions(
    at: PageAddress, snapshot: Snapshot, series: Sequence[Series], answer: EstimateResult
) -> list[tuple[str, str]]:
    """Return definitions with reports that cannot be shown together with these, with addresses.

    They have other values, other segments or other days.
    """
    shown = {one_series.fingerprint for one_series in answer.series}
    return [
        (
            one_series.fingerprint[:SHOWN_DIGITS],
            PageAddress(at.name, {}).to(series=one_series.fingerprint),
        )
        for one_series in series
        if one_series.fingerprint not in shown
        and not one_series.collection.trust.releases
        and snapshot.reports(one_series)
    ]


def time_filters(
    at: PageAddress, newest: Collection, by: GroupBy, view: View, *, smoothable: bool
) -> Iterator[Filter]:
    """Yield the choices of a time series: its time ranges, and whether it is smoothed."""
    known = WIDER[newest.unit][:-1]
    if len(known) > 1:
        yield _parameter(at, "By", "by", {way.value: way.value for way in known}, by)
    if smoothable:
        yield _parameter(at, "Figures", OVER_TIME, SMOOTHING, view, default=View.RAW)


def summary(newest: Collection, query: EstimateQuery) -> str:
    """Return the current view in a line."""
    has_views = kind_of(newest).accepts("view=consistent")
    words = [
        *([f"{query.view} view"] if has_views else []),
        f"at {level(query.level)}",
        *([] if query.looks is LookCount.ONE else [query.looks.valid]),
        f"{fake_share(float(query.fakes))} fake reports assumed"
        if query.fakes
        else "no fake reports",
        *(f"{name}: {value}" for name, value in query.segments),
    ]
    return ", ".join(words)
