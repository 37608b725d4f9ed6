"""What a token says: which slot of which collection it is for, and the pseudonym that spends it."""

from __future__ import annotations

from dataclasses import dataclass

from ..schedule import SecretRandomSource, derive_token_pseudonym, derive_token_salt
from .blind_rsa import BlindedMessage, PublicKey, blind, finalize

MAX_REQUESTS = 128  # slots that one request asks tokens for, at most
_PURPOSE = b"veilcount token 1\0"  # no signature of anything else is a token


def signed_message(fingerprint: str, period: int, pseudonym: bytes) -> bytes:
    """Return the bytes that a token signs."""
    return _PURPOSE + bytes.fromhex(fingerprint) + period.to_bytes(2, "big") + pseudonym


@dataclass(frozen=True, slots=True)
class SlotSecret:
    """One slot of one person: its pseudonym, salt and blinding follow from the person's secret.

    So a crash loses nothing, and whoever asks twice asks for the same signature.
    """

    secret: bytes
    fingerprint: str
    period: int
    answer: int

    @property
    def pseudonym(self) -> bytes:
        """The 16 bytes that the slot's report travels under; no other slot has them."""
        return derive_token_pseudonym(self.secret, self.fingerprint, self.period, self.answer)

    @property
    def message(self) -> bytes:
        """The bytes to be signed."""
        return signed_message(self.fingerprint, self.period, self.pseudonym)

    def blind(self, key: PublicKey) -> BlindedMessage:
        """Return what is sent to the issuer: uniform, whatever the slot."""
        salt = derive_token_salt(self.secret, self.fingerprint, self.period, self.answer)
        return blind(key, self.message, salt, self._blinding_source())

    def finalize(self, key: PublicKey, signed: bytes) -> bytes:
        """Return the token from the issuer's reply; raise TokenError if it is none."""
        return finalize(key, self.message, signed, self.blind(key).inverse)

    def _blinding_source(self) -> SecretRandomSource:
        slot = self.fingerprint, self.period, self.answer
        return SecretRandomSource(self.secret, "token", "blinding", *slot)
