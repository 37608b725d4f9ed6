"""A collection's definitions as text, and the changes from one to the next."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from itertools import pairwise

from veilcount_analysis.kinds.time_ranges import time_range
from veilcount_analysis.mechanisms import handler_of
from veilcount_analysis.series.series import Series
from veilcount_analysis.text.privacy_guarantees import counts_are_public
from veilcount_analysis.text.utc_days import days
from veilcount_shared import Collection
from veilcount_shared.domain import Label
from veilcount_shared.errors import format_value
from veilcount_shared.translations import TEXT_KEYS, by_language

from ....queries import Snapshot
from ..pages import Content

MAX_VALUES = 12  # that are listed
NOTHING = "(missing)"
KEYS = (
    *("measure", "changes", "epsilon", "budget"),
    *("unit", "per_day", "takes", "held", "from", "until", "answers", "late", "linkage"),
    *(
        "tokens",
        "presence",
        "segments",
        "cohort",
        "model",
        "adjacency",
        "delta",
        "noise",
        "twin",
        "owner",
    ),
    "replaces",
    "measured_in",
    "margins",
    "group",
)
GROUP = "group"  # a table of its own; its digest changes with each of its questions
LINE = 2_000  # characters: longer than any list of a dozen


def definition_history(snapshot: Snapshot, series: Sequence[Series]) -> list[Content]:
    """Return a collection's definitions, the newest first, each with what it changed."""
    changed = [changes(old.collection, new.collection) for new, old in pairwise(series)]
    return [
        {
            "fingerprint": one_series.fingerprint,
            "text": "\n".join(lines_of(one_series.collection)),
            "mechanism": handler_of(one_series.collection.mechanism).describe(),
            "holds": _holds(snapshot, one_series),
            "changes": what,
        }
        for one_series, what in zip(series, [*changed, []], strict=True)
    ]


def _holds(snapshot: Snapshot, series: Series) -> str:
    """Return the number and days of a series' reports; nothing where counts are secret."""
    collection = series.collection
    if not counts_are_public(collection):
        return ""
    sizes = snapshot.store.report_counts(series)
    many = f"{sum(sizes.values()):,} reports"
    if not sizes:
        return many
    periods = range(min(sizes).period, max(sizes).period + 1)
    among = time_range(series, periods, snapshot.today)
    return f"{many}, for UTC days {days(among.first, among.last)}"


def lines_of(collection: Collection) -> Iterator[str]:
    """Yield the lines of an equal definitions file."""
    yield f"[{collection.name}]"
    for key, value in entries(collection).items():
        if value != NOTHING and key != GROUP:
            yield f"{key} = {value}"
    if collection.group is not None:
        yield ""
        yield f"[{GROUP}.{collection.group.name}]"
        yield f"questions = {format_value(collection.group.questions, LINE)}"


def entries(collection: Collection) -> dict[str, str]:
    """Return the value of each key, defaults included."""
    cohort, margins = collection.cohort, collection.margins
    special = {
        "per_day": collection.per_day if collection.per_day > 1 else None,
        "from": collection.start,
        "segments": {name: list(labels) for name, labels in collection.segments} or None,
        "twin": None if collection.trust.releases else collection.twin,  # which names both
        "margins": margins
        and {**dict(margins.shares), "source": margins.source, "as_of": margins.as_of},
        GROUP: collection.group and asdict(collection.group),
        "cohort": cohort and {"draw": cohort.draw, "of": cohort.of, "number": cohort.number},
    }
    more = {key: special[key] if key in special else getattr(collection, key) for key in KEYS}
    declared = _texts(collection) | collection.domain.declaration()
    return {key: _written(value) for key, value in declared.items()} | {
        key: format_value(value, LINE) for key, value in more.items()
    }


def _texts(collection: Collection) -> dict[str, object]:
    """Return what people read, by language where there are several."""
    tables = {key: by_language(collection.translations, key) for key in TEXT_KEYS}
    texts = {key: tables[key] or getattr(collection, key, None) for key in TEXT_KEYS}
    return {key: text for key, text in texts.items() if text}


def _written(value: object) -> str:
    """Return a value as an author writes it; of a long list the first values."""
    if isinstance(value, dict):
        fields = (f"{name} = {_written(field)}" for name, field in value.items())
        return f"{{{', '.join(fields)}}}"
    return _some(value) if isinstance(value, list | tuple) else format_value(value, LINE)


def _some(values: Sequence[object]) -> str:
    if len(values) <= MAX_VALUES:
        return f"[{', '.join(format_value(label) for label in values)}]"
    head = ", ".join(format_value(label) for label in values[:MAX_VALUES])
    return f"[{head}, ...]  # {len(values):,} values"


# -- what changed ----------------------------------------------------------------------------------


def changes(old: Collection, new: Collection) -> list[str]:
    """Describe what a newer definition changes."""
    before, after = entries(old), entries(new)
    keys = dict.fromkeys([*before, *after])
    changed = [
        _changed(key, before.get(key, NOTHING), after.get(key, NOTHING))
        for key in keys
        if key != "values" and before.get(key) != after.get(key)
    ]
    return [*_values_changed(old, new), *(sentence for sentence in changed if sentence)]


def _changed(key: str, before: str, after: str) -> str:
    if before == NOTHING:
        return f"{key} is new: {after}" if after != NOTHING else ""
    if after == NOTHING:
        return f"{key} is removed; it was {before}"
    return f"{key} was {before}, is {after}"


def _values_changed(old: Collection, new: Collection) -> Iterator[str]:
    before, after = _labels(old), _labels(new)
    gone = [label for label in before if label not in after]
    added = [label for label in after if label not in before]
    if added:
        yield f"{_many(added)} new: {_some(added)}"
    if gone:
        yield f"{_many(gone)} removed: {_some(gone)}"
    if before and after and not (gone or added) and list(before) != list(after):
        yield "the values are in another order"


def _many(labels: Sequence[Label]) -> str:
    return "1 value is" if len(labels) == 1 else f"{len(labels):,} values are"


def _labels(collection: Collection) -> dict[Label, None]:
    values = collection.domain.declaration().get("values")
    return dict.fromkeys(values) if isinstance(values, list) else {}
