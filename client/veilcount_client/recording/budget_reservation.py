"""Budget reservation: caps reserved at load, in file order, under the app's ceilings.

Nothing here looks at what anyone recorded. A collection fits under the ceilings or it does not,
once, when the definitions are loaded; afterwards its caps are its own, so that no collection's
activity can be read from another's refusals.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from fractions import Fraction

from veilcount_shared import Collection
from veilcount_shared.budget_claims import Ceilings, Claim, claim_all, fit, micro, total

from ..state import Notes

CLAIMS = "claims"
CEILINGS = "ceilings"


@dataclass(frozen=True, slots=True)
class Reservation:
    """The collections that fit under the ceilings, and those that do not."""

    claims: Mapping[str, Claim]  # of the collections that fit, by name
    refused: Mapping[str, str]  # why the others do not
    ceilings: Ceilings


def reserve(
    notes: Notes,
    collections: Iterable[Collection],
    ceiling: Fraction | None = None,
    daily_ceiling: Fraction | None = None,
) -> Reservation:
    """Reserve the caps of these collections, and keep what was reserved.

    Without ceilings, those of the first file ever loaded hold: to grow takes an explicit act.
    """
    claims_by_name = {
        load["name"]: Claim(**load) for load in json.loads(notes.note(CLAIMS) or "[]")
    }
    new_claims = claim_all(collections, claims_by_name)
    ceilings = _ceilings(notes, new_claims, ceiling, daily_ceiling)
    fitting, refused = fit(new_claims, list(claims_by_name.values()), ceilings)
    claims = {claim.name: claim for claim in fitting}
    # Of a refused name the lineage is kept, for what replaces it later; it costs nothing.
    names = {
        claim.name: replace(claim, life=0, day=0, reserved=0)
        for claim in new_claims
        if claim.name in refused
    }
    # What was removed, or is refused in its new form, may have spent: its claim stays.
    stored_claims = [asdict(claim) for claim in (names | claims_by_name | claims).values()]
    notes.keep(CLAIMS, json.dumps(stored_claims, separators=(",", ":")))
    return Reservation(claims, refused, ceilings)


def _ceilings(
    notes: Notes, wanted: list[Claim], ceiling: Fraction | None, daily: Fraction | None
) -> Ceilings:
    stored_ceilings = notes.note(CEILINGS)
    if stored_ceilings is None:
        first = total(wanted)
        stored_ceilings = f"{first.life} {first.day}"
        notes.keep(CEILINGS, stored_ceilings)
    life, day = map(int, stored_ceilings.split())
    return Ceilings(
        life if ceiling is None else micro(ceiling), day if daily is None else micro(daily)
    )
