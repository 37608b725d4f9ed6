"""The private keys of a collection, one a period: made, found, and deleted once it has begun."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from datetime import date

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, generate_private_key

from veilcount_aggregator.errors import StoreUnfit
from veilcount_analysis.series.series import Series
from veilcount_shared import Collection
from veilcount_shared.periods import GRACE
from veilcount_shared.tokens import PublicKey, digest, encode_key

from .key_vault import KeyVault
from .signing import SigningKey

BITS, EXPONENT = 2048, 65537


def entry_name(pinned: str, period: int) -> str:
    """Return the name of a private key in a vault."""
    return f"{pinned}-{period:04}"


def make_keys(periods: int) -> tuple[list[bytes], dict[str, bytes]]:
    """Return new keys: the public ones in the order of periods, and the private ones by name."""
    pairs = [generate_private_key(EXPONENT, BITS) for _ in range(periods)]
    public = [encode_key(PublicKey(pair.public_key().public_numbers().n)) for pair in pairs]
    pinned = digest(public)
    return public, {
        entry_name(pinned, period): pair.private_bytes(
            serialization.Encoding.DER,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        for period, pair in enumerate(pairs)
    }


class PeriodKeys:
    """The keys of one collection in a vault; each is read when it is first needed. Thread-safe."""

    def __init__(
        self, collection: Collection, public: Sequence[PublicKey], listed: bytes, vault: KeyVault
    ) -> None:
        """`listed` is the list of the public keys as everybody gets it."""
        self.collection = collection
        self.listed = listed
        self._public = public
        self._vault = vault
        self._lock = threading.Lock()
        self._read: dict[int, SigningKey] = {}

    @property
    def fingerprint(self) -> str:
        """The fingerprint of the collection."""
        return self.collection.fingerprint

    def unbegun(self, today: date) -> int:
        """Return the first period that has not begun: nothing is signed for those before it."""
        return Series(self.collection).open_periods(today)[1] + 1

    def is_over(self, today: date) -> bool:
        """Whether no period takes reports any more."""
        return Series(self.collection).over(self.collection.periods - 1, today)

    def find(self, period: int) -> SigningKey | None:
        """Return the key of a period; None: it was deleted."""
        with self._lock:
            if period not in self._read:
                content = self._vault.read(self.name(period))
                if content is None:
                    return None
                self._read[period] = self._parse(period, content)
            return self._read[period]

    def missing(self, today: date) -> list[int]:
        """Return the periods whose key should be in the vault, and is not."""
        names = self._vault.names()
        periods = range(self.unbegun(today), self.collection.periods)
        return [period for period in periods if self.name(period) not in names]

    def delete_begun(self, today: date) -> None:
        """Delete the keys of periods that began a day ago: whoever has one signs any votes."""
        begun = range(self.unbegun(today - GRACE))
        with self._lock:
            for period in begun:
                self._read.pop(period, None)
        self._vault.delete({self.name(period) for period in begun} & self._vault.names())

    def name(self, period: int) -> str:
        """Return the name of a period's key in the vault."""
        return entry_name(self.collection.tokens or "", period)

    def _parse(self, period: int, content: bytes) -> SigningKey:
        # Not validated again, which takes longer than to sign: a wrong one fails its fault check.
        key = serialization.load_der_private_key(content, None, unsafe_skip_rsa_key_validation=True)
        if isinstance(key, RSAPrivateKey):
            numbers = key.private_numbers()
            signing_key = SigningKey.from_primes(numbers.p, numbers.q, EXPONENT, numbers.d)
            if signing_key.public == self._public[period]:
                return signing_key
        raise StoreUnfit(f"the key of period {period} of {self.collection.name} is not its own")
