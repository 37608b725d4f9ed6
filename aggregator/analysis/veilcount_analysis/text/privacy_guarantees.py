"""The privacy guarantees of a definition, and whether its exact counts are public."""

from __future__ import annotations

from dataclasses import dataclass

from veilcount_shared import Collection
from veilcount_shared.collection import Adjacency
from veilcount_shared.errors import format_value
from veilcount_shared.notice import notice

from ..series.series import publishes_n


@dataclass(frozen=True, slots=True)
class PrivacyFigures:
    """The three figures, which stand together, of one adjacency: decimals in strings, so exact."""

    event: str
    day: str
    user: str
    adjacency: Adjacency


def epsilons(collection: Collection) -> PrivacyFigures:
    """Return the three figures, exactly."""
    return PrivacyFigures(
        format_value(collection.epsilon_event),
        format_value(collection.epsilon_day),
        format_value(collection.epsilon_user),
        collection.epsilon_adjacency,
    )


def promise(collection: Collection) -> list[str]:
    """Return the privacy notice of a definition, a line for each part."""
    return [f"{part.title}. {part.text}" for part in notice(collection).texts()]


def counts_are_public(collection: Collection) -> bool:
    """Whether exact numbers of reports may be shown: of a curator's by one rule for all of it."""
    return not collection.trust.releases or publishes_n(collection)
