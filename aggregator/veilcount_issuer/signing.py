"""Blind signatures, the signer's side: RSASP1 by the Chinese remainder theorem [RFC 9474, 4.3].

Three ways in which a private key leaks, and what stands against each:

- the time of an exponentiation: `gmpy2.powmod_sec`, whose time depends on the sizes alone, on a
  message that is blinded once more (base blinding), so that nobody chooses what is exponentiated;
- a fault in one of the two halves: n and a wrong signature have a factor in common [Boneh, DeMillo,
  Lipton 1997], so each signature is checked before it leaves;
- a message outside of its range: it is refused, and so are 0, 1 and n - 1, which are their own
  signatures up to sign.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import Any

from veilcount_aggregator.errors import SigningFault, SigningUnavailable
from veilcount_shared.errors import TokenError
from veilcount_shared.tokens import PublicKey

LEAST = 2  # 0 and 1 are their own signatures


def require_gmpy2() -> Any:
    """Return gmpy2, or raise SigningUnavailable with the fix."""
    try:
        import gmpy2  # noqa: PLC0415 - only an issuer needs it
    except ImportError as error:
        raise SigningUnavailable from error
    return gmpy2


@dataclass(frozen=True, slots=True, repr=False)
class SigningKey:
    """A private RSA key as the Chinese remainder theorem uses it; it is never shown."""

    public: PublicKey
    p: int
    q: int
    d_p: int  # d mod p - 1
    d_q: int
    q_inverse: int  # of q mod p

    @classmethod
    def from_primes(cls, p: int, q: int, e: int, d: int) -> SigningKey:
        """Return the key of two primes and its exponents."""
        return cls(PublicKey(p * q, e), p, q, d % (p - 1), d % (q - 1), pow(q, -1, p))

    def sign(self, blinded: bytes) -> bytes:
        """Return the signature of a blinded message; the same one whenever it is asked for."""
        gmpy2 = require_gmpy2()
        n, e = gmpy2.mpz(self.public.n), self.public.e
        message = self._parse(blinded)
        r, mask = _random(self.public.n), _random(self.public.n)
        # The inverse of r * mask, which is uniform: its time reveals nothing of r.
        inverse = gmpy2.invert(r * mask % n, n) * mask % n
        signed = self._exponentiate(message * gmpy2.powmod(r, e, n) % n) * inverse % n
        if gmpy2.powmod(signed, e, n) != message:
            raise SigningFault
        return int(signed).to_bytes(self.public.size, "big")

    def refusal(self, blinded: bytes) -> str | None:
        """Return why this is no blinded message of the key; None: it is one."""
        try:
            self._parse(blinded)
        except TokenError as error:
            return error.problem
        return None

    def _parse(self, blinded: bytes) -> int:
        if len(blinded) != self.public.size:
            raise TokenError("blinded", f"give {self.public.size} bytes")
        message = int.from_bytes(blinded, "big")
        if not LEAST <= message < self.public.n - 1:
            raise TokenError("blinded", "give a number from 2 to n - 2")
        return message

    def _exponentiate(self, message: int) -> int:
        """Return message^d mod n from its two halves [RFC 8017, section 5.1.2, Garner]."""
        gmpy2 = require_gmpy2()
        p, q = gmpy2.mpz(self.p), gmpy2.mpz(self.q)
        half_p = gmpy2.powmod_sec(message % p, gmpy2.mpz(self.d_p), p)
        half_q = gmpy2.powmod_sec(message % q, gmpy2.mpz(self.d_q), q)
        joined: int = half_q + q * ((half_p - half_q) * self.q_inverse % p)
        return joined


def _random(n: int) -> int:
    """Return a uniform number; one that is not invertible would be a factor of n."""
    return LEAST + secrets.randbelow(n - LEAST)
