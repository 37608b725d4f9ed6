"""What a state that was copied, restored or damaged means: from when on answers count again.

A state that is part of an image comes back as it was at every start: each time it is found to be a
copy, and forgoes the periods that have begun. One that was moved twice within a period says so.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date

from veilcount_shared import Collection, schedule

from ..clock import instant
from ..recording.answer_times import period_number

FIX = "keep the state's directory on a volume, and out of images and backups"


def moved_state(
    moved: tuple[float, ...], collections: Iterable[Collection], now: float
) -> str | None:
    """Return what follows from the moves of a state, as long as it matters to a collection."""
    waiting = {
        collection.name: again(moved, collection)
        for collection in collections
        if is_barred(moved, collection, now)
    }
    if not waiting:
        return None
    names = {day: [name for name in waiting if waiting[name] == day] for day in waiting.values()}
    answers = "; ".join(
        f"{', '.join(names[day])} {f'from {day} on' if day else 'never again'}"
        for day in sorted(names, key=lambda day: day or date.max)
    )
    return (
        f"it was copied, restored or damaged, last seen on {instant(max(moved)):%Y-%m-%d}, and what"
        f" was answered since is not known. Answers count: {answers}. {_advice(moved, collections)}"
    )


def is_barred(moved: tuple[float, ...], collection: Collection, now: float) -> bool:
    """Whether a move keeps a person from answering a collection that is or will be running."""
    if not moved or period_number(collection, max(moved)) < 0:
        return False
    current = period_number(collection, now)
    is_last = again(moved, collection) is None
    return current < collection.periods and (
        is_last or current <= period_number(collection, max(moved))
    )


def again(moved: tuple[float, ...], collection: Collection) -> date | None:
    """Return the day from which on answers count again; None: there is none."""
    following = period_number(collection, max(moved)) + 1
    if collection.is_trend or following >= collection.periods:
        return None
    return schedule.period_start(collection, following).date()


def _advice(moved: tuple[float, ...], collections: Iterable[Collection]) -> str:
    for collection in collections:
        last = period_number(collection, moved[-1])
        count = sum(period_number(collection, at) == last for at in moved)
        if count > 1:
            return (
                f"It was moved {count} times within one {collection.unit}: is it part of a"
                f" container image, or put back at every start? {FIX.capitalize()}"
            )
    return f"If this comes at every start, it is part of a container image: {FIX}"
