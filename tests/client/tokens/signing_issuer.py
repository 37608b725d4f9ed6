"""An issuer in the test's process that signs for real, with caps and a log, and can fail."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from cryptography.hazmat.primitives.asymmetric import rsa

from veilcount_client.delivery.issuer import SlotsRefused, SlotToSign
from veilcount_shared import Collection
from veilcount_shared.tokens import PublicKey, digest, encode_key

from ..device_fixtures import one_collection

MOST_PERIODS = 30


@cache
def key_pairs() -> list[rsa.RSAPrivateNumbers]:
    """Return keys, made once: a tenth of a second each."""
    made = [rsa.generate_private_key(65537, 2048) for _ in range(MOST_PERIODS)]
    return [each.private_numbers() for each in made]


def public(pair: rsa.RSAPrivateNumbers) -> bytes:
    return encode_key(PublicKey(pair.public_numbers.n))


class SigningIssuer:
    """Signs blinded messages of one account, as often as the collection allows."""

    def __init__(self, now: Callable[[], float], per_period: int = 1, first: int = 0) -> None:
        self.now, self.per_period = now, per_period
        self.pairs = key_pairs()[first:]
        self.issued: dict[tuple[str, int], set[bytes]] = defaultdict(set)
        self.log: list[tuple[float, str, tuple[int, ...]]] = []
        self.blinded: list[bytes] = []
        self.fault: Callable[[list[bytes]], list[bytes]] = lambda signed: signed
        self.periods = 0

    def of(self, **keys: Any) -> dict[str, Collection]:
        """Return a collection whose tokens it signs."""
        plain = one_collection("it", linkage="none", **keys)["it"]
        self.periods = plain.periods
        pinned = digest(self.keys(""))
        return one_collection("it", linkage="token", tokens=pinned, **keys)

    def keys(self, fingerprint: str) -> list[bytes]:
        return [public(each) for each in self.pairs[: self.periods]]

    def sign(self, fingerprint: str, slots: Sequence[SlotToSign]) -> list[bytes]:
        """Return the signatures, all or nothing."""
        self.log.append((self.now(), fingerprint, tuple(each.period for each in slots)))
        self.blinded += [each.blinded for each in slots]
        grown = {place: set(found) for place, found in self.issued.items()}
        for each in slots:
            grown.setdefault((fingerprint, each.period), set()).add(each.blinded)
        over = {period for (_, period), found in grown.items() if len(found) > self.per_period}
        if over:
            raise SlotsRefused(frozenset(each.period for each in slots) - over)
        self.issued.update(grown)
        return self.fault([self._sign(each) for each in slots])

    def _sign(self, slot: SlotToSign) -> bytes:
        pair = self.pairs[slot.period]
        message = int.from_bytes(slot.blinded, "big")
        halves = pow(message, pair.dmp1, pair.p), pow(message, pair.dmq1, pair.q)
        signed = halves[1] + pair.q * ((halves[0] - halves[1]) * pair.iqmp % pair.p)
        return signed.to_bytes(256, "big")
