"""Consent decisions: yes, no, to everything or to some questions, and forget me.

A withdrawal wipes what waits, and what is wiped is not drawn again. Where presence is hidden, only
those who had not recorded would send an absence in its place; so whoever returns to a hidden
collection, or agrees to a new form of one, answers it from the next period on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from veilcount_shared import Collection
from veilcount_shared.collection import Presence

from .delivery.worker import ClientWorker
from .errors import NotAnAnswer
from .recording.known_definitions import known_definitions, remember
from .state import ConsentDecision, PersonState, Resumption

LOADED = "loaded"  # note: the series of the definitions that were loaded last
HIDDEN = "+hidden"
NEW = "new"  # of a decision: on what the consent does not cover and nobody declined

Only = str | Iterable[str] | None


class _AllSeries:
    """Contains every fingerprint, also of definitions that are not loaded any more."""

    def __contains__(self, fingerprint: object) -> bool:
        return True


ALL_SERIES = _AllSeries()


def check_answer(granted: object) -> None:
    """Raise NotAnAnswer unless it is True or False: every web form delivers text, and "no" is true.

    By identity: 0 and 1 are numbers of something.
    """
    if granted is not True and granted is not False:
        kind = type(granted).__name__
        raise NotAnAnswer(f'consent: give True or False, not a {kind}; of a form: answer == "yes"')


@dataclass(frozen=True, slots=True)
class ConsentDecisions:
    """Stores and applies the decisions of persons, by key, for the accepted collections."""

    worker: ClientWorker
    accepted: Mapping[str, Collection]
    now: Callable[[], float]

    # -- what is decided -----------------------------------------------------------------------

    def consented(self, key: bytes) -> bool | None:
        """Return True, False, or None before the person has decided."""
        return self.worker.state.person(key).consented

    def must_ask(self, key: bytes) -> bool:
        """Return whether the person has a decision to make: never again after a no to all."""
        return bool(self.unasked(key))

    def unasked(self, key: bytes) -> list[str]:
        """Return the collections that the person has neither agreed to nor declined."""
        return self._unasked(self.worker.state.person(key))

    def _unasked(self, person: PersonState) -> list[str]:
        if person.consented is False:
            return []
        return [
            name
            for name, collection in self.accepted.items()
            if collection.fingerprint not in person.covered
            and self._lineage(name) not in person.declined
        ]

    # -- deciding ------------------------------------------------------------------------------

    def consent(self, key: bytes, *, granted: bool, only: Only = None) -> None:
        """Store a decision; what is withdrawn is wiped at once: queued, held and stored."""
        with self.worker.storing:  # what is being stored was recorded before
            person = self.worker.state.person(key)
            decision = self._decision(person, granted=granted, only=only)
            if decision.consented is False:
                self.worker.discard(key, ALL_SERIES)
            elif decision.withdrawn:
                self.worker.discard(key, decision.withdrawn)
            self.worker.state.consent(key, decision)
        self._wake_if_due()

    def _decision(self, person: PersonState, *, granted: bool, only: Only) -> ConsentDecision:
        unchanged = ConsentDecision(self.now(), person.consented, declined=person.declined)
        if only == NEW and person.consented is False:
            return unchanged  # to a person who said no to everything nothing is new
        is_whole = only is None or (only == NEW and person.consented is None)
        names = self._named(person, None if is_whole else only)
        if granted:
            return self._agreement(unchanged, person, names, is_whole=is_whole)
        if is_whole:
            return replace(unchanged, consented=False)
        withdrawn, lineages = self._series(names) & person.covered, self._lineages(names)
        return replace(unchanged, withdrawn=withdrawn, declined=person.declined | lineages)

    def _agreement(
        self, unchanged: ConsentDecision, person: PersonState, names: list[str], *, is_whole: bool
    ) -> ConsentDecision:
        """Return a yes: to everything it lifts no refusal by name, to named questions it does."""
        declined = person.declined
        if not is_whole:
            lineages = self._lineages(names)
            if person.consented is False:  # to everything: the others stay declined
                declined |= self._lineages(self.accepted)
            declined -= lineages
        agreed = [name for name in names if self._lineage(name) not in declined]
        covered = self._covered(person, agreed)
        return replace(unchanged, consented=True, covered=covered, declined=declined)

    def _named(self, person: PersonState, only: Only) -> list[str]:
        """Return the names of the collections that a decision is about."""
        if only is None:
            return list(self.accepted)
        if only == NEW:
            return self._unasked(person)
        names = [] if isinstance(only, str) else list(only)
        if not names or not all(isinstance(name, str) for name in names):
            raise NotAnAnswer(f'only = {only!r}: give "{NEW}" or a list of names')
        if unknown := sorted(set(names) - self.accepted.keys()):
            listed = ", ".join(self.accepted)
            raise NotAnAnswer(f"only: no {', '.join(unknown)} in {listed}: give names of these")
        return names

    def _covered(self, person: PersonState, names: Iterable[str]) -> dict[str, Resumption]:
        """Return what is to be covered, and from when on, where presence is hidden."""
        now, lineages = self.now(), self._answered_lineages(person)
        return {
            self.accepted[name].fingerprint: Resumption(
                now if _hides(self.accepted[name]) and self._lineage(name) in lineages else 0.0,
                now if _hides(self.accepted[name]) else 0.0,
            )
            for name in names
        }

    def _answered_lineages(self, person: PersonState) -> set[str]:
        """Return the lineages of which a person ever agreed to a form."""
        known = known_definitions(self.worker.state)
        return {known[series].lineage for series in person.coverage if series in known}

    def _lineage(self, name: str) -> str:
        return self.worker.recorder.drawer.claims[name].lineage

    def _lineages(self, names: Iterable[str]) -> frozenset[str]:
        return frozenset(map(self._lineage, names))

    def _series(self, names: Iterable[str]) -> frozenset[str]:
        return frozenset(self.accepted[name].fingerprint for name in names)

    def forget(self, key: bytes) -> None:
        """Wipe secret, answers, outbox and decisions; keep what was spent. Nothing is sent."""
        with self.worker.storing:
            self.worker.discard(key, ALL_SERIES)
            if not self.worker.uploader.persons:
                self.worker.uploader.replies.forget()
            self.worker.state.forget(key)

    # -- starting ------------------------------------------------------------------------------

    def load(self) -> None:
        """Wipe what is left of definitions that are gone or have changed.

        Held values: nothing will freeze them any more. Where presence is hidden, waiting reports
        too: they were recorded, and no absence is drawn any more for others.
        """
        state = self.worker.state
        remember(state, self.accepted.values(), self.worker.recorder.drawer.claims)
        last = set((state.note(LOADED) or "").split())
        loaded = {_marked(collection) for collection in self.accepted.values()}
        for series in last - loaded:
            state.retire(series.removesuffix(HIDDEN), reports=series.endswith(HIDDEN))
        if loaded != last:
            state.keep(LOADED, " ".join(sorted(loaded)))

    def resume(self, key: bytes) -> bool | None:
        """Go on where another process ended; return the consent."""
        self._wake_if_due()
        return self.consented(key)

    def _wake_if_due(self) -> None:
        """Start the thread before the first record only for what must not depend on one."""
        state = self.worker.state
        issuance = self.worker.uploader.issuance
        tokens = issuance.next_due if issuance else state.next_due
        waiting = (state.next_due, state.next_held, tokens)
        hides = any(map(_hides, self.accepted.values()))
        if any(due() is not None for due in waiting) or (hides and state.consenting()):
            self.worker.wake()


def _hides(collection: Collection) -> bool:
    return collection.presence is Presence.HIDDEN


def _marked(collection: Collection) -> str:
    return collection.fingerprint + (HIDDEN if _hides(collection) else "")
