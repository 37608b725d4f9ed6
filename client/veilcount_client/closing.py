"""The one word of a server that a device keeps: it takes no more for a collection.

Kept as a note of the series: no process that has heard it, or has started since, draws, charges or
sends in vain. A server that says so without cause gains silence and nothing else. Another form of
the collection is another series, and is not closed.
"""

from __future__ import annotations

from collections.abc import Iterable

from .state import State


def closed(state: State, series: Iterable[str]) -> set[str]:
    """Return those of these series of which the state knows that they were closed."""
    return {each for each in series if state.note(_named(each))}


def keep_closed(state: State, series: str) -> None:
    """Keep that a series was closed: for good, whoever withdraws or is forgotten."""
    state.keep(_named(series), "yes")


def _named(series: str) -> str:
    return f"closed {series}"
