"""The registry of release journals: which hosts must have confirmed the store before a release.

It is kept in the store's records, one for each journal. A journal confirms a *view*: the store's
incarnation together with the identities of all registered journals. So a store that was restarted,
promoted or replaced, and a journal that joined or left, each make a new view, which every
registered journal has to confirm anew; `store_confirmation` states what it checks before it does.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass

from ..store import Record, Store

KIND = "journal"
RETIRED = "journal-retired"
UNLOCKS = "unlock"


@dataclass(frozen=True, slots=True)
class RegisteredJournal:
    """One registered journal, and the view that it confirmed last."""

    id: str
    label: str
    view: str = ""
    at: str = ""  # when it confirmed that, to the second, UTC; "": never

    def __str__(self) -> str:
        return f"{self.label} ({self.id})"

    def record(self) -> Record:
        """Return it as it is kept."""
        return Record(KIND, self.id, json.dumps(asdict(self), sort_keys=True).encode())


def registered_journals(store: Store) -> dict[str, RegisteredJournal]:
    """Return the registered journals, by identity."""
    kept = store.records(KIND)
    return {id_: RegisteredJournal(**json.loads(value)) for id_, value in sorted(kept.items())}


def view_digest(incarnation: str, journals: Iterable[str]) -> str:
    """Return the name of a view."""
    return hashlib.sha256("\n".join([incarnation, *sorted(journals)]).encode()).hexdigest()[:32]


def without_confirmation(
    journals: Mapping[str, RegisteredJournal], incarnation: str
) -> list[RegisteredJournal]:
    """Return the journals that have not confirmed the present view."""
    present = view_digest(incarnation, journals)
    return [each for each in journals.values() if each.view != present]


def unconfirmed_journals(store: Store) -> list[RegisteredJournal]:
    """Return the journals that releases from this store wait for."""
    journals = registered_journals(store)
    return without_confirmation(journals, store.incarnation()) if journals else []
