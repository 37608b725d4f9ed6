"""Draws, values and shorthands for tests of a state."""

from __future__ import annotations

import hashlib

from veilcount_client.state import (
    ClientState,
    ConsentDecision,
    HeldValue,
    QueuedReport,
    ReportDraw,
    Resumption,
)
from veilcount_shared.report import Report

SERIES, OTHER, THIRD = "ab" * 32, "cd" * 32, "ef" * 32
ANN, BEN = (hashlib.sha256(name).digest()[:16] for name in (b"ann", b"ben"))
COST = 1_000_000
NOW = 1_764_633_600.123456  # no binary fraction: as text it would be rounded
DAY = 739_000
LATE = NOW + 86_400.0


def pseudonym(person: bytes) -> bytes:
    return hashlib.md5(person).digest()  # noqa: S324 - any 16 bytes


def draw(
    period: int = 0,
    answer: int = 0,
    *,
    person: bytes = ANN,
    series: str = SERIES,
    lineage: str = "theme",
    message: bytes = b"m",
    days: tuple[int, int] | None = None,
    life_cap: int = 1000 * COST,
    day_cap: int = 1000 * COST,
    send_at: float = NOW,
    earliest: float = NOW,
    expires: float = LATE,
    free: bool = False,
    coverage: int = 0,
) -> ReportDraw:
    """Return a draw of one epsilon that may leave at once."""
    first_day, end_day = days or (DAY + period, DAY + period + 1)
    return ReportDraw(
        person=person,
        lineage=lineage,
        series=series,
        period=period,
        answer=answer,
        cost=COST,
        first_day=first_day,
        end_day=end_day,
        day_cap=day_cap,
        life_cap=life_cap,
        report=Report(series, period, 3, pseudonym(person), answer, message),
        earliest=earliest,
        send_at=send_at,
        expires=expires,
        free=free,
        round=coverage,
    )


def held(
    value: str,
    *,
    person: bytes = ANN,
    series: str = SERIES,
    period: int = 0,
    at: float = NOW,
    due: float = NOW + 60,
) -> HeldValue:
    return HeldValue(person, series, period, 3, value, at, due)


def yes(
    *series: str, at: float = NOW, if_new: float = 0, if_returning: float = 0
) -> ConsentDecision:
    """Return a yes to these series, and from when on they are answered."""
    covered = dict.fromkeys(series, Resumption(if_new, if_returning))
    return ConsentDecision(at, consented=True, covered=covered)


def agree(state: ClientState, *persons: bytes) -> None:
    for person in persons or (ANN,):
        state.consent(person, yes(SERIES, OTHER, THIRD))


def withdraw(state: ClientState, person: bytes = ANN) -> None:
    state.consent(person, ConsentDecision(NOW, consented=False))


def lease_all(state: ClientState, now: float = NOW, until: float = NOW + 600) -> list[QueuedReport]:
    return state.lease(now, until, 1000)


def lease_numbers(state: ClientState, now: float = NOW) -> list[int]:
    return [each.number for each in lease_all(state, now)]


def statuses(state: ClientState, person: bytes = ANN) -> list[str]:
    return [sent.status for sent in state.sent(person)]


def spent(state: ClientState, person: bytes = ANN, lineage: str = "theme") -> int:
    """Return what a person has spent for life, in whole epsilons."""
    entry = state.spent(person).get(lineage)
    return entry.life // COST if entry else 0
