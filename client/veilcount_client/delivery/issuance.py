"""Issuance: a person's tokens are requested at once, at an instant that nothing recorded moves.

Blindings follow from the person's secret, so a request whose reply was lost is made again as it
was, and costs nothing. Tokens that come in one period are good from the next one on, so that whose
tokens were issued when says nothing of which report is whose.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from veilcount_shared import Collection, RandomSource
from veilcount_shared.collection import Linkage
from veilcount_shared.errors import TokenError
from veilcount_shared.tokens import MAX_REQUESTS, PublicKey, SlotSecret, check_key_list

from ..recording.answer_times import is_answering, period_number, tokens_requested_at
from ..state import ClientState, PersonState
from .issuer import IssuerUnavailable, SlotsRefused, SlotToSign, TokenIssuer

_SPENT = (
    "the account had its tokens of some periods before, on another device or in an earlier state:"
    " what is recorded in them is dropped (no_token)"
)
RETRY = 3600.0  # seconds, half of them at least, until a failed request is made again
GRAIN = 1_000_000
DONE = "done"


@dataclass
class Issuance:
    """Requests what tokens are due, and keeps them."""

    state: ClientState
    issuer: TokenIssuer | None
    collections: Mapping[str, Collection]
    randomness: RandomSource
    now: Callable[[], float]
    complain: Callable[[str, str], None]
    _retry_at: dict[tuple[bytes, str], float] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def due(self) -> Iterator[Callable[[], None]]:
        """Yield a task for each person and collection whose tokens are due."""
        now = self.now()
        for person, collection, at in self._open():
            if at <= now:
                yield self._task(person, collection)

    def next_due(self) -> float | None:
        """Return when tokens are next to be requested."""
        return min((at for _, _, at in self._open()), default=None)

    def is_done(self, key: bytes, fingerprint: str) -> bool:
        """Whether no further token of a person will come."""
        return self.state.note(_note(self.state.person(key), fingerprint)) == DONE

    def after_fork(self) -> None:
        """In a forked child: what is under way is the parent's."""
        self._retry_at, self._lock = {}, threading.Lock()

    def _open(self) -> Iterator[tuple[PersonState, Collection, float]]:
        """Yield who still lacks tokens of which collection, and when they are to be requested."""
        open_requests = [
            collection
            for collection in self.collections.values()
            if collection.linkage is Linkage.TOKEN
        ]
        for key in self.state.consenting() if open_requests and self.issuer else ():
            person = self.state.person(key)
            for collection in open_requests:
                series = collection.fingerprint
                if series in person.covered and not self.is_done(key, series):
                    drawn = tokens_requested_at(person, collection)
                    yield person, collection, max(drawn, self._retry_at.get((key, series), drawn))

    def _task(self, person: PersonState, collection: Collection) -> Callable[[], None]:
        def issue() -> None:
            with self._lock:  # one at a time: another thread may be at it
                if not self.is_done(person.key, collection.fingerprint):
                    self._issue(person, collection)

        return issue

    def _issue(self, person: PersonState, collection: Collection) -> None:
        try:
            self._request(person, collection)
        except (IssuerUnavailable, TokenError) as error:
            self._again(person, collection, str(error))
        except Exception as error:  # noqa: BLE001 - whatever went wrong on the way
            self._again(person, collection, type(error).__name__)
        else:
            self.state.keep(_note(person, collection.fingerprint), DONE)

    def _again(self, person: PersonState, collection: Collection, why: str) -> None:
        self.complain(f"issuer {collection.name}", why)
        wait = RETRY * (1 + self.randomness.below(GRAIN) / GRAIN) / 2
        self._retry_at[person.key, collection.fingerprint] = self.now() + wait

    def _request(self, person: PersonState, collection: Collection) -> None:
        assert self.issuer is not None, "nothing is due without one"  # noqa: S101
        slots = list(self._slots(person, collection))
        if not slots:
            return
        listed = self.issuer.keys(collection.fingerprint)
        keys = check_key_list(listed, collection.periods, collection.tokens or "")
        for first in range(0, len(slots), MAX_REQUESTS):
            self._sign(person, collection, keys, slots[first : first + MAX_REQUESTS])

    def _slots(self, person: PersonState, collection: Collection) -> Iterator[SlotSecret]:
        """Yield the person's slots of periods that have not begun, and have no token."""
        for period in range(period_number(collection, self.now()) + 1, collection.periods):
            if not is_answering(person, collection, period):
                continue
            for answer in range(collection.per_day):
                slot = SlotSecret(person.secret, collection.fingerprint, period, answer)
                if self.state.token(person.key, slot.pseudonym) is None:
                    yield slot

    def _sign(
        self,
        person: PersonState,
        collection: Collection,
        keys: list[PublicKey],
        slots: list[SlotSecret],
    ) -> None:
        assert self.issuer is not None, "nothing is due without one"  # noqa: S101
        while slots:
            blinded = [
                SlotToSign(slot.period, slot.blind(keys[slot.period]).blinded) for slot in slots
            ]
            try:
                signed = self.issuer.sign(collection.fingerprint, blinded)
            except SlotsRefused as refused:  # after a reinstall: what was issued before is spent
                left = refused.left
                self.complain(f"issuer {collection.name}", _SPENT)
                remaining = [slot for slot in slots if slot.period in left]
                if len(remaining) == len(slots):
                    raise IssuerUnavailable("409 for what it says is left") from refused
                slots = remaining
                continue
            tokens = {
                slot.pseudonym: slot.finalize(keys[slot.period], signature)
                for slot, signature in zip(slots, signed, strict=True)
            }
            self.state.keep_tokens(person, tokens)
            return


def _note(person: PersonState, fingerprint: str) -> str:
    """Return the name of a note: of this secret, since another one needs tokens of its own."""
    mark = hashlib.sha256(b"tokens" + person.secret).hexdigest()[:16]
    return f"tokens {fingerprint} {mark}"
