"""Budget claims: what the collections of one person may cost, by lineage, under the app's ceilings.

A claim is the cap of one lineage: a collection, and all that continue it under another name. Money
is in millionths of an epsilon.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

from .collection import Collection
from .epsilon import EPSILON_GRAIN


def micro(epsilon: Fraction) -> int:
    """Return an epsilon in millionths; every definition's is a whole number of them."""
    return int(epsilon * EPSILON_GRAIN)


@dataclass(frozen=True, slots=True)
class Claim:
    """The cap of one lineage, and which persons it excludes."""

    name: str
    lineage: str
    life: int
    day: int
    reserved: int  # the most that any form of it could have spent, this one's included
    draw: str | None = None  # of the cohorts of one draw, or a group's questions, a person has one
    number: int = 0
    pair: str | None = None  # a person answers one half of a paired collection


@dataclass(frozen=True, slots=True)
class Ceilings:
    """The most epsilon that the app lets a person spend, in total and in a UTC day."""

    life: int
    day: int


def claim_all(collections: Iterable[Collection], earlier: Mapping[str, Claim]) -> list[Claim]:
    """Build the claims of collections; `earlier` has those of the definitions before, by name."""
    return [_claim(collection, earlier) for collection in collections]


def _claim(collection: Collection, earlier: Mapping[str, Claim]) -> Claim:
    earlier_claim = earlier.get(collection.name) or earlier.get(collection.replaces or "")
    life, share = micro(collection.epsilon_user), collection.drawn_share
    claim = Claim(
        collection.name,
        earlier_claim.lineage if earlier_claim else collection.replaces or collection.name,
        life,
        micro(collection.epsilon_day),
        max(life, earlier_claim.reserved if earlier_claim else 0),
        f"{share.draw} {share.of}" if share else None,
        share.number if share else 0,
        " ".join(sorted((collection.name, collection.twin))) if collection.twin else None,
    )
    return _grouped(claim, earlier_claim or claim)


def total(claims: Iterable[Claim]) -> Ceilings:
    """Return what one person can reveal at most under these claims, in all and in a day."""
    heirs = _heirs(claims)
    return Ceilings(
        _most([(claim, claim.reserved) for claim in heirs]),
        _most([(claim, claim.day) for claim in heirs]),
    )


def _heirs(claims: Iterable[Claim]) -> list[Claim]:
    """Return one claim a lineage, the larger of each figure: they spend from one account."""
    heirs: dict[str, Claim] = {}
    for claim in claims:
        heir = heirs.get(claim.lineage, claim)
        heirs[claim.lineage] = replace(
            _grouped(claim, heir),
            reserved=max(claim.reserved, heir.reserved),
            day=max(claim.day, heir.day),
        )
    return list(heirs.values())


def _most(costs: list[tuple[Claim, int]]) -> int:
    """Sum the costs: of a pair the larger half counts, of a draw's cohorts the largest."""
    pairs: dict[str, int] = defaultdict(int)
    draws: dict[str, dict[int, int]] = defaultdict(lambda: defaultdict(int))
    free = 0
    for claim, cost in costs:
        if claim.pair is not None:
            cost, pairs[claim.pair] = (  # noqa: PLW2901 - what the second half adds to the first
                max(0, cost - pairs[claim.pair]),
                max(cost, pairs[claim.pair]),
            )
        if claim.draw is None:
            free += cost
        else:
            draws[claim.draw][claim.number] += cost
    return free + sum(max(numbers.values()) for numbers in draws.values())


def fit(
    wanted: list[Claim], past: list[Claim], ceilings: Ceilings
) -> tuple[list[Claim], dict[str, str]]:
    """Take claims in file order as long as they fit. What past ones reserved stays reserved."""
    fitting: list[Claim] = []
    refused: dict[str, str] = {}
    for claim in wanted:
        life = total([*past, *fitting, claim]).life
        day = total([*fitting, claim]).day
        if life > ceilings.life:
            refused[claim.name] = _too_much("ceiling", life, ceilings.life)
        elif day > ceilings.day:
            refused[claim.name] = _too_much("daily_ceiling", day, ceilings.day)
        else:
            fitting.append(claim)
    return fitting, refused


def _too_much(name: str, needed: int, ceiling: int) -> str:
    grain = EPSILON_GRAIN
    return f"needs {name} = {needed / grain:g}, it is {ceiling / grain:g}: raise it to allow this"


def _grouped(claim: Claim, known: Claim) -> Claim:
    """Return a claim that excludes whom both forms of it exclude: alike, or nobody.

    Who answered one form may not be who answers the other.
    """
    if (claim.draw, claim.number, claim.pair) == (known.draw, known.number, known.pair):
        return claim
    return replace(claim, draw=None, number=0, pair=None)
