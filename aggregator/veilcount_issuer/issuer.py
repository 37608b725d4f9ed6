"""One issuer put together: the keys of its collections, its ledger, what it signs and publishes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date, datetime
from pathlib import Path

from veilcount_aggregator.errors import StoreUnfit
from veilcount_aggregator.store import Store
from veilcount_aggregator.store.restore_lock import ledger_is_whole
from veilcount_analysis.series.series import utc_day
from veilcount_serving.errors import SettingsError
from veilcount_shared import load_collections
from veilcount_shared.collection import Linkage

from .key_setup import no_tokens, open_keys
from .key_vault import LEDGER, KeyVault
from .ledger import IssuanceLedger, SlotRequest
from .numbers_key import read_private_key
from .own_store import require_own_store
from .period_keys import PeriodKeys
from .problems import refuse
from .publication import Publication, read_lines
from .signing import SigningKey, require_gmpy2

#: why nothing is issued from a ledger that may lack tokens
UNCERTAIN = (
    "the ledger may lack tokens that were issued: the store was restored, or is newer than the"
    " keys. Nothing is issued: put the newest ledger back; or, only if accounts may have their caps"
    " once more, `veilcount issuer accept`"
)


class Issuer:
    """Signs slot tokens for accounts, each within its caps."""

    def __init__(
        self,
        keys: Mapping[str, PeriodKeys],
        publication: Publication,
        clock: Callable[[], datetime],
    ) -> None:
        """Issue for the collections of these keys, by fingerprint."""
        self._keys = keys
        self._publication = publication
        self._ledger = publication.ledger
        self.store = publication.store
        self.clock = clock
        self._published: dict[str, int] = {}

    @classmethod
    def open(
        cls, files: Sequence[Path], store: Store, vault: KeyVault, clock: Callable[[], datetime]
    ) -> Issuer:
        """Return the issuer of definitions files; refuse what is not complete."""
        require_gmpy2()
        require_own_store(store)
        today = utc_day(clock())
        keys: dict[str, PeriodKeys] = {}
        for file in files:
            collections = load_collections(file).values()
            tokens = [
                collection for collection in collections if collection.linkage is Linkage.TOKEN
            ]
            if not tokens:
                raise no_tokens(file)
            keys |= {token.fingerprint: open_keys(file, token, vault, today) for token in tokens}
        return cls(keys, open_publication(store, vault), clock)

    def key_list(self, fingerprint: str) -> bytes:
        """Return the public keys of a collection as JSON, the same for everybody."""
        return self._of(fingerprint).listed

    def issue(self, account: str, fingerprint: str, requests: Sequence[SlotRequest]) -> list[bytes]:
        """Return the signatures, in order, for an account; all or nothing.

        They are recorded before they are made: a crash in between costs nobody a token, since the
        same messages are free afterwards. StoreUnfit: the ledger may lack tokens.
        """
        if not ledger_is_whole(self.store):
            raise StoreUnfit(UNCERTAIN)
        keys = self._of(fingerprint)
        unbegun = keys.unbegun(utc_day(self.clock()))
        signers = _signers(keys, requests, unbegun)
        for place, (signer, request) in enumerate(zip(signers, requests, strict=True)):
            if (problem := signer.refusal(request.blinded)) is not None:
                raise refuse("bad-field", problem, f"requests[{place}].blinded")
        self._refuse_begun(fingerprint, requests)
        self._ledger.record(account, keys.collection, requests, unbegun)
        self._refuse_begun(fingerprint, requests)  # its accounts may have been counted meanwhile
        return [
            signer.sign(request.blinded) for signer, request in zip(signers, requests, strict=True)
        ]

    def issued_numbers(self, fingerprint: str) -> bytes:
        """Return the published numbers of a collection, the same for everybody.

        Also of a collection that this issuer no longer has: its numbers outlive its keys.
        """
        lines = self._publication.file(fingerprint)
        if not lines:
            self._of(fingerprint)
        return lines

    def publish(self) -> None:
        """Publish the number of each period that has begun; StoreUnfit: lines may be lost."""
        if not self._unpublished(utc_day(self.clock())):
            return
        problems = []
        for keys, unbegun in self._unpublished(self._earliest_day()):
            try:
                self._publication.publish(keys.collection, unbegun)
                self._published[keys.fingerprint] = unbegun
            except StoreUnfit as error:  # the others are published
                problems.append(error)
        if problems:
            raise problems[0]

    def contradictions(self) -> Iterator[str]:
        """Yield where the ledger is older than what was published from it."""
        today = self._earliest_day()
        for keys in self._keys.values():
            if not keys.is_over(today):
                yield from self._publication.contradictions(keys.collection)

    def periods_without_number(self) -> dict[str, int]:
        """Count the periods that have begun and have no line, by fingerprint."""
        today = utc_day(self.clock())
        return {
            fingerprint: keys.unbegun(today) - len(read_lines(self.store, fingerprint))
            for fingerprint, keys in self._keys.items()
        }

    def retire(self) -> None:
        """Delete the keys of periods that have begun, and the ledgers of collections that are over.

        A ledger stays until all its numbers are published.
        """
        today = self._earliest_day()
        for fingerprint, keys in self._keys.items():
            keys.delete_begun(today)
            is_published = self._published.get(fingerprint) == keys.collection.periods
            if keys.is_over(today) and is_published:
                self._ledger.delete(fingerprint)

    def _unpublished(self, today: date) -> list[tuple[PeriodKeys, int]]:
        """Return the keys of collections with more begun periods than were published."""
        begun = [(keys, keys.unbegun(today)) for keys in self._keys.values()]
        return [pair for pair in begun if self._published.get(pair[0].fingerprint, -1) < pair[1]]

    def _earliest_day(self) -> date:
        """Return the earlier day of this host's clock and the store's: what is final waits."""
        return min(map(utc_day, [self.clock(), *self.store.server_times()]))

    def _refuse_begun(self, fingerprint: str, requests: Sequence[SlotRequest]) -> None:
        """Refuse periods that another host, whose clock is ahead, publishes or has published."""
        if begun := self._publication.begun(fingerprint, {request.period for request in requests}):
            raise refuse("period-begun", over=sorted(begun))

    def _of(self, fingerprint: str) -> PeriodKeys:
        if (keys := self._keys.get(fingerprint)) is None:
            raise refuse("not-found")
        return keys


def open_publication(store: Store, vault: KeyVault) -> Publication:
    """Return the ledger and the published numbers of a store, under the secrets of a vault."""
    secret = vault.read(LEDGER)
    if secret is None:
        fix = "the secret of the ledger is not there: run `veilcount issuer keys`"
        raise SettingsError("--keys", "", fix)
    return Publication(store, IssuanceLedger(store, secret), read_private_key(vault))


def _signers(keys: PeriodKeys, requests: Sequence[SlotRequest], unbegun: int) -> list[SigningKey]:
    """Return the key of each request; refuse periods that have begun, or not of the campaign."""
    periods = keys.collection.periods
    for place, signing_request in enumerate(requests):
        if not 0 <= signing_request.period < periods:
            why = f"give a period of the campaign: 0 to {periods - 1}"
            raise refuse("bad-field", why, f"requests[{place}].period")
    keys_by_period = {
        period: keys.find(period) for period in {request.period for request in requests}
    }
    over = sorted(
        period for period, key in keys_by_period.items() if period < unbegun or key is None
    )
    if over:
        raise refuse("period-begun", over=over)
    return [key for request in requests if (key := keys_by_period[request.period]) is not None]
