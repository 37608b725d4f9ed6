"""Whether the exact number of reports of a central collection may be published."""

from __future__ import annotations

from veilcount_shared import Collection
from veilcount_shared.collection import Adjacency


def publishes_n(collection: Collection) -> bool:
    """Whether the exact number of answers may leave: of all periods at once, or of none, ever.

    Only under substitution, and where each person is asked for exactly one answer in every period:
    then substituting a person's value changes no period's number. Where persons may come or go, or
    are asked several times a period, or in some periods only, a number reveals whether, or how
    often, a person answered.
    """
    once = collection.per_period == 1 and collection.answering == collection.periods
    return collection.adjacency is Adjacency.SUBSTITUTE and once
