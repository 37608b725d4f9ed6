"""What the bench asks: questions of one campaign, as objects and as a file of definitions."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction
from functools import lru_cache
from typing import Any

from veilcount_analysis.series.series import Series
from veilcount_shared import Collection, parse_collections
from veilcount_shared.domain import Choice, Domain
from veilcount_shared.periods import Unit

TABLE = """
[bench{place}]
question = "Which of 64?"
values = {values}
epsilon = 4
unit = "event"
per_day = {slots}
from = {first}
until = {last}
"""


def ask(domain: Domain, epsilon: Fraction | int, **options: Any) -> Collection:
    """Return a question that is asked once in a campaign of a month."""
    return Collection(
        app="bench",
        name="bench",
        question="Which one?",
        domain=domain,
        epsilon=Fraction(epsilon),
        **({"unit": Unit.USER} | options),
        start=date(2026, 1, 1),
        until=date(2026, 2, 1),
    )


@lru_cache(maxsize=8)
def choice(k: int, epsilon: Fraction | int) -> Collection:
    """Return a question with k values."""
    return ask(Choice(tuple(range(k))), epsilon)


def definitions(slots: int, number: int = 1) -> str:
    """Return questions of 64 answers, each asked so many times a day; an epoch is a day."""
    today = datetime.now(UTC).date()
    first, last = today - timedelta(days=1), today + timedelta(days=5)
    same = {"values": json.dumps([f"v{place}" for place in range(64)]), "slots": slots}
    tables = (
        TABLE.format(place=place or "", **same, first=first, last=last) for place in range(number)
    )
    return "".join(['app = "bench"\n', *tables])


def questions(slots: int, number: int) -> list[Series]:
    """Return the series of so many questions."""
    parsed = parse_collections(definitions(slots, number), lambda _: [])
    return list(map(Series, parsed.values()))


def question(slots: int) -> Series:
    """Return the series of one question."""
    return questions(slots, 1)[0]
