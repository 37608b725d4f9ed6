"""Remembers which series the aggregator has closed: for the receipt, `explain` and `doctor`.

What a closing changes is kept by row (`State.close_row`): the pseudonym that received it sends no
more, and no other does less, or a server could find a device's pseudonyms by closing one. Another
form of the collection is another series, and is not closed.
"""

from __future__ import annotations

from collections.abc import Iterable

from . import ClientState


def closed_series(state: ClientState, series: Iterable[str]) -> set[str]:
    """Return those of these series of which the state knows that they were closed."""
    return {each for each in series if state.note(_named(each))}


def add_closed_series(state: ClientState, series: str) -> None:
    """Keep that a series was closed: for good, whoever withdraws or is forgotten."""
    state.keep(_named(series), "yes")


def _named(series: str) -> str:
    return f"closed {series}"
