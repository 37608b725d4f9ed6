"""The ways to look at a collection, as links: each view has its address."""

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
from .formatting import level_of, of_fakes
from .url_state import AT_ONCE, LONG, TOP, Address

LEVELS = ("0.9", "0.95", "0.99")
FAKES = ("0", "0.001", "0.01", "0.05")
SHOWN_DIGITS = 8

Way = tuple[str, str, bool]  # its words, its address, whether it is this one


@dataclass(frozen=True, slots=True)
class Ways:
    """One choice."""

    label: str
    ways: tuple[Way, ...]


def ways(
    at: Address, series: Sequence[Series], newest: Collection, asked: EstimateQuery
) -> Iterator[Ways]:
    """Yield all choices that a collection has."""
    if not isinstance(newest.domain, Number):
        yield from _of_values(at, newest, asked)
    yield _level(at, asked)
    if not handler_of(newest.mechanism).has_histogram:
        yield _looks(at, asked)
    yield _fakes(at, asked)
    if presence_is_hidden(newest):
        yield _among(at, asked)
    yield from _segments(at, newest, asked)
    if len(series) > 1:
        yield _series(at, series, asked)


def _of_values(at: Address, newest: Collection, asked: EstimateQuery) -> Iterator[Ways]:
    if isinstance(newest.domain, Cross):
        yield _groups(at, newest.domain, asked)
    if newest.domain.size > LONG:
        yield _list(at, newest.domain.size, asked)
    if not asked.groups:
        yield Ways(
            "View",
            (
                ("raw", at.to(view=None), asked.view is View.RAW),
                (
                    "consistent",
                    at.to(view=View.CONSISTENT.value),
                    asked.view is View.CONSISTENT,
                ),
            ),
        )
    yield _together(at, newest.domain.size, asked)


def _groups(at: Address, domain: Cross, asked: EstimateQuery) -> Ways:
    names = part_names(domain)
    parts = tuple(
        (f"by {each}", at.chosen(group=each, view=None), asked.groups == (each,)) for each in names
    )
    return Ways("Show", (("all together", at.chosen(), not asked.groups), *parts))


def _list(at: Address, size: int, asked: EstimateQuery) -> Ways:
    paged = not (asked.top or asked.values or asked.groups)
    return Ways(
        "Values",
        (
            (f"the {TOP} largest", at.chosen(), asked.top == TOP),
            (f"all {size:,}, in pages", at.chosen(page="1"), paged),
        ),
    )


def _together(at: Address, size: int, asked: EstimateQuery) -> Ways:
    usual = size > AT_ONCE
    on = asked.is_simultaneous
    return Ways(
        "Intervals hold",
        (
            ("each alone", at.to(simultaneous="false" if usual else None), not on),
            ("all at once", at.to(simultaneous=None if usual else "true"), on),
        ),
    )


def _level(at: Address, asked: EstimateQuery) -> Ways:
    return Ways(
        "Level",
        tuple(
            (
                f"{float(each) * 100:g} %",
                at.to(level=None if each == "0.95" else each),
                asked.level == float(each),
            )
            for each in LEVELS
        ),
    )


def _looks(at: Address, asked: EstimateQuery) -> Ways:
    return Ways(
        "Intervals valid",
        tuple(
            (
                each.valid.removeprefix("valid "),
                at.to(looks=None if each is LookCount.ONE else each.value),
                asked.looks is each,
            )
            for each in LookCount
        ),
    )


def _fakes(at: Address, asked: EstimateQuery) -> Ways:
    return Ways(
        "Fake reports",
        tuple(
            (
                of_fakes(float(each)) if float(each) else "not shown",
                at.to(fakes=None if each == "0.01" else each),
                float(asked.fakes) == float(each),
            )
            for each in FAKES
        ),
    )


def _among(at: Address, asked: EstimateQuery) -> Ways:
    said = {Denominator.ALL: "of all devices", Denominator.ANSWERED: "of those who answered"}
    return Ways(
        "Shares",
        tuple(
            (
                words,
                at.to(among=None if each is Denominator.ALL else each.value),
                asked.among is each,
            )
            for each, words in said.items()
        ),
    )


def _segments(at: Address, newest: Collection, asked: EstimateQuery) -> Iterator[Ways]:
    chosen = dict(asked.segments)
    for name, labels in newest.segments:
        words = [spelled(label) for label in labels]
        known = [f"{name}:{each}" for each in words]
        each_one = tuple(
            (each, at.also("segment", f"{name}:{each}", known), chosen.get(name) == each)
            for each in words
        )
        yield Ways(name, (("all", at.also("segment", "", known), name not in chosen), *each_one))


def _series(at: Address, series: Sequence[Series], asked: EstimateQuery) -> Ways:
    each_one = tuple(
        (
            each.fingerprint[:SHOWN_DIGITS],
            at.to(series=each.fingerprint[:SHOWN_DIGITS]),
            any(each.fingerprint.startswith(given) for given in asked.series),
        )
        for each in series
    )
    return Ways("Definition", (("side by side", at.to(series=None), not asked.series), *each_one))


def others(
    at: Address, snapshot: Snapshot, series: Sequence[Series], answer: EstimateResult
) -> list[tuple[str, str]]:
    """Return the definitions that have answers and no place beside the others, with addresses.

    They ask for other values, of other segments, or of other days.
    """
    shown = {each.fingerprint for each in answer.series}
    return [
        (each.fingerprint[:SHOWN_DIGITS], Address(at.name, {}).to(series=each.fingerprint))
        for each in series
        if each.fingerprint not in shown
        and each.collection.model is Model.LOCAL
        and snapshot.reports(each)
    ]


def cuts(at: Address, newest: Collection, cut: GroupBy | None) -> Ways | None:
    """Return how a range may be cut over time; None: there is one way at most."""
    known = WIDER[newest.unit][:-1]
    if cut is None or len(known) < 2:  # noqa: PLR2004 - a choice has two
        return None
    return Ways("GroupBy", tuple((each.value, at.to(by=each.value), each is cut) for each in known))


def summary(newest: Collection, asked: EstimateQuery) -> str:
    """Return in a line how a collection is looked at."""
    together = "all at once" if asked.is_simultaneous else "each alone"
    number = isinstance(newest.domain, Number)
    words = [
        *([] if number else [f"{asked.view} view", f"intervals {together}"]),
        f"at {level_of(asked.level)}",
        *([] if asked.looks is LookCount.ONE else [asked.looks.valid]),
        f"{of_fakes(float(asked.fakes))} of fakes reckoned with" if asked.fakes else "no fakes",
        *(f"{name}: {value}" for name, value in asked.segments),
    ]
    return ", ".join(words)
