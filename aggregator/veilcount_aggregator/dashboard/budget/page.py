"""The page: three figures that stand together, and all that follows from them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flask import Response, g, request

from ... import queries
from ...auth.api_keys import Role
from ...errors import QueryError
from ...queries import BudgetQuery, BudgetResult
from ...queries.json_encoding import decimal
from ...series.series import Series
from ...text import number_format
from ..layout import Frame
from ..series_choice import definition, definitions
from .composition_charts import attack, composed
from .facts import facts, said
from .spend_histogram import counted
from .units import units

ASKED = ("delta", "n")


def pages(frame: Frame) -> None:
    """Add the page."""

    @frame.page("/collections/<name>/budget", computes=True)
    def budget(name: str) -> Response:
        """What a person reveals to a collection."""
        snapshot = frame.aggregator.snapshot()
        everyone = snapshot.named(name)
        series = definition(everyone)
        typed = {entry: request.args.get(entry, "").strip() for entry in ASKED}
        shown: dict[str, Any] = {
            "name": name,
            "question": series.collection.question,
            "definitions": definitions("budget", everyone, series),
            "series": series,
            "typed": typed,
        }
        given = {entry: [word] for entry, word in typed.items()}
        given["series"] = [series.fingerprint]
        try:
            asked = BudgetQuery.parse(given)
        except QueryError as error:
            return frame.told("budget.html", 400, **shown, wrong=error)
        found = queries.budget(snapshot, name, asked, bars=g.visit.role is Role.ADMIN)
        return frame.told("budget.html", **shown, **_shown(series, found, asked))


def _shown(series: Series, answer: BudgetResult, asked: BudgetQuery) -> Mapping[str, Any]:
    (found,) = answer.series
    collection, account = series.collection, found.budget
    return {
        "says": said(account),
        "figures": account.figures,
        "facts": facts(collection, account),
        "counted": counted(account, found.bars),
        "composed": composed(collection, account, asked.delta),
        "attack": attack(account),
        "units": units(found.levels, found.n_is),
        "across": answer.across,
        "delta": decimal(asked.delta),
        "figure": number_format.epsilon,
    }
