"""Consent decisions: yes, no, forget me, and what a renewed consent must not reveal.

A withdrawal wipes what waits, and what is wiped is not drawn again. Where presence is hidden, only
those who had not recorded would send an absence in its place; so a returning person answers hidden
collections from the next period on. The note of a departure is stored before anything is wiped.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from veilcount_shared import Collection
from veilcount_shared.collection import Presence

from .delivery.worker import ClientWorker
from .recording.known_definitions import remember

LOADED = "loaded"  # note: the series of the definitions that were loaded last
HIDDEN = "+hidden"


@dataclass(frozen=True, slots=True)
class ConsentDecisions:
    """Stores and applies the decisions of persons, by key, for the accepted collections."""

    worker: ClientWorker
    accepted: Mapping[str, Collection]
    now: Callable[[], float]

    def consented(self, key: bytes) -> bool | None:
        """Return True, False, or None before the person has decided."""
        return self.worker.state.person(key).consented

    def unasked(self, key: bytes) -> list[str]:
        """Return the collections that the person's consent does not cover."""
        covered = self.worker.state.person(key).covered
        return [name for name, each in self.accepted.items() if each.fingerprint not in covered]

    def consent(self, key: bytes, *, granted: bool) -> None:
        """Store the decision; a no wipes at once what is queued, held and stored."""
        state = self.worker.state
        with self.worker.storing:  # what is being stored was recorded before
            if granted:
                covered = frozenset(each.fingerprint for each in self.accepted.values())
                state.consent(key, True, covered, self.now())
                self._return(key)
            else:
                self._depart(key)
                self.worker.discard(key)
                state.consent(key, False, frozenset(), self.now())
        self._wake_if_due()

    def forget(self, key: bytes) -> None:
        """Wipe secret, answers and outbox, keep what was spent, have the rows closed."""
        with self.worker.storing:
            self._depart(key)
            self.worker.discard(key)
            if not self.worker.uploader.persons:
                self.worker.uploader.replies.forget()
            self.worker.state.forget(key)
        self.worker.wake()

    def load(self) -> None:
        """Wipe what is left of definitions that are gone or have changed.

        Held values: nothing will freeze them any more. Where presence is hidden, waiting reports
        too: they were recorded, and no absence is drawn any more for others. And whoever has
        answered the old form must not answer the new one in the same time range, so nobody does.
        """
        state = self.worker.state
        remember(state, self.accepted.values(), self.worker.recorder.drawer.claims)
        last = set((state.note(LOADED) or "").split())
        loaded = {_marked(each): each for each in self.accepted.values()}
        gone = last - loaded.keys()
        for series in gone:
            state.retire(series.removesuffix(HIDDEN), reports=series.endswith(HIDDEN))
        new = {name: each for name, each in loaded.items() if name not in last and _hides(each)}
        for key in state.consenting() if gone and new else ():
            self.worker.recorder.drawer.forgo(key, new.values(), self.now())
        if loaded.keys() != last:
            state.keep(LOADED, " ".join(sorted(loaded)))

    def resume(self, key: bytes) -> bool | None:
        """Resume where another process ended, perhaps in the middle; return the consent."""
        consented = self.consented(key)
        if consented:
            self._return(key)
        self._wake_if_due()
        return consented

    def _hides(self) -> bool:
        return any(map(_hides, self.accepted.values()))

    def _depart(self, key: bytes) -> None:
        if self._hides() and self.worker.state.person(key).since:
            self.worker.state.keep(_departed(key), "yes")

    def _return(self, key: bytes) -> None:
        state = self.worker.state
        if self._hides() and state.note(_departed(key)):
            self.worker.recorder.drawer.forgo(key, self.accepted.values(), self.now())
            state.keep(_departed(key), "")

    def _wake_if_due(self) -> None:
        """Start the thread before the first record only for what must not depend on one."""
        state = self.worker.state
        issuance = self.worker.uploader.issuance
        tokens = issuance.next_due if issuance else state.next_due
        waiting = (state.next_due, state.next_row_close, state.next_held, tokens)
        if any(due() is not None for due in waiting) or (self._hides() and state.consenting()):
            self.worker.wake()


def _hides(collection: Collection) -> bool:
    return collection.presence is Presence.HIDDEN


def _marked(collection: Collection) -> str:
    return collection.fingerprint + (HIDDEN if _hides(collection) else "")


def _departed(key: bytes) -> str:
    return f"departed {key.hex()}"
