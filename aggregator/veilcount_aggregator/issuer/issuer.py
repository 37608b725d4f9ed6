"""One issuer put together: the keys of its collections, its ledger, and what it signs for whom."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime
from pathlib import Path

from veilcount_shared import load_collections
from veilcount_shared.collection import Linkage

from ..errors import SettingsError
from ..series.series import utc_day
from ..store import Store
from .key_setup import no_tokens, open_keys
from .key_vault import LEDGER, KeyVault
from .ledger import IssuanceLedger, SlotRequest
from .own_store import require_own_store
from .period_keys import PeriodKeys
from .problems import refuse
from .signing import SigningKey, require_gmpy2


class Issuer:
    """Signs slot tokens for accounts, each within its caps."""

    def __init__(
        self,
        keys: Mapping[str, PeriodKeys],
        ledger: IssuanceLedger,
        store: Store,
        clock: Callable[[], datetime],
    ) -> None:
        """Issue for the collections of these keys, by fingerprint."""
        self._keys = keys
        self._ledger = ledger
        self.store = store
        self.clock = clock

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
            tokens = [each for each in collections if each.linkage is Linkage.TOKEN]
            if not tokens:
                raise no_tokens(file)
            keys |= {each.fingerprint: open_keys(file, each, vault, today) for each in tokens}
        secret = vault.read(LEDGER)
        if secret is None:
            fix = "the secret of the ledger is not there: run `veilcount issuer keys`"
            raise SettingsError("--keys", "", fix)
        return cls(keys, IssuanceLedger(store, secret), store, clock)

    def key_list(self, fingerprint: str) -> bytes:
        """Return the public keys of a collection as JSON, the same for everybody."""
        return self._of(fingerprint).listed

    def issue(self, account: str, fingerprint: str, requests: Sequence[SlotRequest]) -> list[bytes]:
        """Return the signatures, in order, for an account; all or nothing.

        They are recorded before they are made: a crash in between costs nobody a token, since the
        same messages are free afterwards.
        """
        keys = self._of(fingerprint)
        oldest = keys.oldest(utc_day(self.clock()))
        signers = _signers(keys, requests, oldest)
        for place, (signer, each) in enumerate(zip(signers, requests, strict=True)):
            if (problem := signer.refusal(each.blinded)) is not None:
                raise refuse("bad-field", problem, f"requests[{place}].blinded")
        self._ledger.record(account, keys.collection, requests, oldest)
        return [signer.sign(each.blinded) for signer, each in zip(signers, requests, strict=True)]

    def retire(self) -> None:
        """Delete the keys of periods that are over, and the ledgers of collections that are.

        The earlier one of this host's clock and the store's decides.
        """
        today: date = min(map(utc_day, [self.clock(), *self.store.server_times()]))
        for fingerprint, keys in self._keys.items():
            if keys.delete_over(today):
                self._ledger.delete(fingerprint)

    def _of(self, fingerprint: str) -> PeriodKeys:
        if (found := self._keys.get(fingerprint)) is None:
            raise refuse("not-found")
        return found


def _signers(keys: PeriodKeys, requests: Sequence[SlotRequest], oldest: int) -> list[SigningKey]:
    """Return the key of each request; refuse periods that are over, or not of the campaign."""
    periods = keys.collection.periods
    for place, each in enumerate(requests):
        if not 0 <= each.period < periods:
            why = f"give a period of the campaign: 0 to {periods - 1}"
            raise refuse("bad-field", why, f"requests[{place}].period")
    found = {period: keys.find(period) for period in {each.period for each in requests}}
    over = sorted(period for period, key in found.items() if period < oldest or key is None)
    if over:
        raise refuse("period-over", over=over)
    return [key for each in requests if (key := found[each.period]) is not None]
