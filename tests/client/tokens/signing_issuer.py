"""An issuer in the test's process that signs for real, with caps and a log, and can fail."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import cache
from random import Random
from typing import Any

import gmpy2
from cryptography.hazmat.primitives.asymmetric import rsa

from veilcount_client.delivery.issuer import SlotsRefused, SlotToSign
from veilcount_shared import Collection
from veilcount_shared.tokens import PublicKey, digest, encode_key

from ..device_fixtures import one_collection

MOST_PERIODS, EXPONENT = 30, 65_537


@cache
def key_pairs() -> list[rsa.RSAPrivateNumbers]:
    """Return the same keys in every run: fingerprints, and so drawn instants, depend on them."""
    draws = Random(1)
    return [_key_pair(_prime(draws), _prime(draws)) for _ in range(MOST_PERIODS)]


def _prime(draws: Random) -> int:
    while True:
        prime = int(gmpy2.next_prime(draws.getrandbits(1024) | 3 << 1022))
        if prime % EXPONENT != 1:
            return prime


def _key_pair(p: int, q: int) -> rsa.RSAPrivateNumbers:
    d = pow(EXPONENT, -1, (p - 1) * (q - 1))
    halves = rsa.rsa_crt_dmp1(d, p), rsa.rsa_crt_dmq1(d, q), rsa.rsa_crt_iqmp(p, q)
    return rsa.RSAPrivateNumbers(p, q, d, *halves, rsa.RSAPublicNumbers(EXPONENT, p * q))


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
