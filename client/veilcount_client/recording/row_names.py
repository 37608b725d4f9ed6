"""Rows: the names under which an aggregator may have counted a person's answers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from veilcount_shared import schedule
from veilcount_shared.collection import Linkage
from veilcount_shared.wire import encode_base64

from ..state import ClientState
from .known_definitions import known_definitions


class RowName(NamedTuple):
    """What an operator needs to close one row; whoever knows it can tell it is the person's."""

    fingerprint: str
    pseudonym: str  # as the wire spells it

    def __str__(self) -> str:
        return f"{self.fingerprint} {self.pseudonym}"


def row_names(state: ClientState, key: bytes) -> list[RowName]:
    """Return the names of a person's rows, of definitions that are not loaded any more as well.

    Of a period that was not answered, too: nothing is stored that would tell. Without a linkage,
    or with tokens, each report is a row of its own, which takes no other report.
    """
    return list(_row_names(state, key))


def _row_names(state: ClientState, key: bytes) -> Iterator[RowName]:
    secret = state.person(key).secret
    for series, definition in known_definitions(state).items():
        last, _ = state.used(key, series)
        if last < 0 or definition.linkage not in {Linkage.COLLECTION, Linkage.PERIOD}:
            continue
        epochs = range(last + 1) if definition.linkage == Linkage.PERIOD else (0,)
        for epoch in epochs:
            pseudonym = schedule.derive_linked_pseudonym(secret, series, epoch)
            yield RowName(series, encode_base64(pseudonym))
