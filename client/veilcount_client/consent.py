"""Consent decisions: yes, no, to everything or to some questions, and forget me.

A withdrawal wipes what waits, and what is wiped is not drawn again. Where presence is hidden, only
those who had not recorded would send an absence in its place; so whoever returns to a hidden
collection, or agrees to a new form of one, answers it from the next period on.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass

from veilcount_shared import Collection
from veilcount_shared.collection import Presence

from .delivery.worker import ClientWorker
from .errors import NotAnAnswer
from .recording.known_definitions import RowName, known_definitions, lineage_of, remember, row_names
from .state import ConsentDecision, PersonState, Resumption, StateError
from .state.key_derivation import person_key

LOADED = "loaded"  # note: the series of the definitions that were loaded last
HIDDEN = "+hidden"
NEW = "new"  # of a decision: on what the consent does not cover and nobody declined
SIGNAL = "signal:"  # declined with everything, by a browser; no name of a question has a colon

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


class NoDecisions:
    """Answers for nobody, and while there is no state: nothing is accepted, asked or stored."""

    def __init__(self) -> None:
        """Accept nothing."""
        self.accepted: Mapping[str, Collection] = {}

    def key(self, person: str | None) -> bytes:  # noqa: ARG002 - likewise below: nobody has any
        """Return the key of a person in the state."""
        return b""

    def consented(self, key: bytes) -> bool | None:  # noqa: ARG002
        """Return True, False, or None before the person has decided."""
        return None

    def unasked(self, key: bytes) -> list[str]:  # noqa: ARG002
        """Return the collections that the person has neither agreed to nor declined."""
        return []

    def rows(self, key: bytes) -> list[RowName]:  # noqa: ARG002
        """Return the names of the rows that an operator can close."""
        return []

    def consent(self, key: bytes, *, granted: bool, only: Only = None) -> None:
        """Store a decision; what is withdrawn is wiped at once: queued, held and stored."""

    def object_once(self, key: bytes) -> None:
        """Store a no that a browser sends, unless one was stored before: later decisions count."""

    def forget(self, key: bytes) -> None:
        """Wipe secret, answers, outbox and decisions; keep what was spent. Nothing is sent."""


@dataclass(frozen=True, slots=True)
class ConsentDecisions(NoDecisions):
    """Stores and applies the decisions of persons, by key, for the accepted collections."""

    worker: ClientWorker
    accepted: Mapping[str, Collection]
    loaded: Mapping[str, Collection]  # with those that are refused
    now: Callable[[], float]

    # -- what is decided -----------------------------------------------------------------------

    def key(self, person: str | None) -> bytes:
        return b"" if person is None else person_key(self.worker.state.root, person)

    def consented(self, key: bytes) -> bool | None:
        refusal = self.worker.refusals.get(key)
        if refusal is not None and refusal.consented is False:
            return False
        return self.worker.state.person(key).consented

    def unasked(self, key: bytes) -> list[str]:
        return self._unasked(self.worker.state.person(key))

    def rows(self, key: bytes) -> list[RowName]:
        return row_names(self.worker.state, key)

    def _unasked(self, person: PersonState) -> list[str]:
        if person.consented is False:
            return []
        lineages = self._lineages(self.accepted)
        return [
            name
            for name, collection in self.accepted.items()
            if collection.fingerprint not in person.covered
            and lineages[name] not in person.declined
        ]

    # -- deciding ------------------------------------------------------------------------------

    def consent(self, key: bytes, *, granted: bool, only: Only = None) -> None:
        with self.worker.storing:
            self.worker.store_queued()  # what was recorded before a yes is no answer
            person = self.worker.state.person(key)
            self._store(key, self._decision(person, granted=granted, only=only), granted=granted)
        if granted and any(map(_hides, self.accepted.values())):
            self.worker.recorder.look_again()
            self.worker.wake()  # whose absences do not wait for a record

    def object_once(self, key: bytes) -> None:
        if SIGNAL in self.worker.state.person(key).declined:
            return
        with self.worker.storing:
            self.worker.store_queued()
            if SIGNAL not in self.worker.state.person(key).declined:
                no = ConsentDecision(self.now(), consented=False, declined=frozenset({SIGNAL}))
                self._store(key, no, granted=False)

    def _store(self, key: bytes, decision: ConsentDecision, *, granted: bool) -> None:
        if decision.consented is False:
            self.worker.discard(key, ALL_SERIES)
        elif decision.withdrawn:
            self.worker.discard(key, decision.withdrawn)
        try:
            self.worker.state.consent(key, decision)
        except StateError:
            if not granted:  # it holds in this process, and nothing is sent until it is stored
                self.worker.refusals[key] = decision
            raise

    def _decision(self, person: PersonState, *, granted: bool, only: Only) -> ConsentDecision:
        if only == NEW and person.consented is False:
            return ConsentDecision(self.now())  # to whom said no to everything nothing is new
        is_whole = only is None or (only == NEW and person.consented is None)
        names = self._named(person, None if is_whole else only)
        if granted:
            return self._agreement(person, names, is_whole=is_whole)
        if is_whole:
            return ConsentDecision(self.now(), consented=False)
        declined = frozenset(self._lineages(names).values())
        return ConsentDecision(
            self.now(), withdrawn=self._forms(person, declined), declined=declined
        )

    def _agreement(
        self, person: PersonState, names: list[str], *, is_whole: bool
    ) -> ConsentDecision:
        """Return a yes: to everything it lifts no refusal by name, to named questions it does."""
        all_lineages = self._lineages(self.loaded)
        lifted = frozenset() if is_whole else frozenset(all_lineages[name] for name in names)
        declined = frozenset[str]()
        if not is_whole and person.consented is False:  # to everything: the others stay declined
            declined = frozenset(all_lineages.values()) - lifted
        refused = (person.declined | declined) - lifted
        agreed = [
            name for name in names if name in self.accepted and all_lineages[name] not in refused
        ]
        covered = self._covered(person, agreed)
        return ConsentDecision(
            self.now(), consented=True, covered=covered, declined=declined, lifted=lifted
        )

    def _named(self, person: PersonState, only: Only) -> list[str]:
        """Return the names of the collections that a decision is about."""
        if only is None:
            return list(self.accepted)
        if only == NEW:
            return self._unasked(person)
        names = _listed(only)
        if not names or not all(isinstance(name, str) for name in names):
            raise NotAnAnswer(f'only = {only!r}: give "{NEW}" or a list of names')
        if unknown := sorted(set(names) - self.loaded.keys()):
            listed = ", ".join(self.loaded)
            raise NotAnAnswer(f"only: no {', '.join(unknown)} in {listed}: give names of these")
        return names

    def _covered(self, person: PersonState, names: Iterable[str]) -> dict[str, Resumption]:
        """Return what is to be covered, and from when on, where presence is hidden."""
        now, answered = self.now(), self._answered_lineages(person)
        lineages = self._lineages(self.accepted)
        return {
            self.accepted[name].fingerprint: Resumption(
                now if _hides(self.accepted[name]) and lineages[name] in answered else 0.0,
                now if _hides(self.accepted[name]) else 0.0,
            )
            for name in names
        }

    def _answered_lineages(self, person: PersonState) -> set[str]:
        """Return the lineages of which a person ever agreed to a form."""
        definitions = known_definitions(self.worker.state)
        return {definitions[series].lineage for series in person.coverage if series in definitions}

    def _forms(self, person: PersonState, lineages: Container[str]) -> frozenset[str]:
        """Return what is covered of these lineages, also of forms that are not loaded any more."""
        definitions = known_definitions(self.worker.state)
        return frozenset(
            series
            for series in person.covered
            if series in definitions and definitions[series].lineage in lineages
        )

    def _lineages(self, names: Iterable[str]) -> dict[str, str]:
        """Return the lineage of each of these collections."""
        definitions = known_definitions(self.worker.state)
        claims = self.worker.recorder.drawer.claims
        return {
            name: claims[name].lineage
            if name in claims
            else lineage_of(definitions, self.loaded[name])
            for name in names
        }

    def forget(self, key: bytes) -> None:
        with self.worker.storing:
            self.worker.discard(key, ALL_SERIES)
            if not self.worker.uploader.persons:
                self.worker.uploader.forget_replies()
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
        # What is loaded and refused now, for want of a route, is not gone: other processes go on.
        loaded = {_marked(collection) for collection in self.loaded.values()}
        for series in last - loaded:
            resumed = self.now() if series.endswith(HIDDEN) else 0.0
            state.retire(series.removesuffix(HIDDEN), resumed)
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


def _listed(only: object) -> list[str]:
    """Return a list of names; empty if it is none."""
    return list(only) if isinstance(only, Iterable) and not isinstance(only, str) else []


def _hides(collection: Collection) -> bool:
    return collection.presence is Presence.HIDDEN


def _marked(collection: Collection) -> str:
    return collection.fingerprint + (HIDDEN if _hides(collection) else "")
