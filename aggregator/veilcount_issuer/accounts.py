"""Accounts: who asks for tokens, as the app's own backend vouches for it.

Built in are signed account tokens: an opaque account id and an expiry, under HMAC-SHA256 or
Ed25519. The algorithm is the key's, never the token's. An app whose sessions or whose platform's
attestation are to be verified instead gives a verifier of its own, by an entry point of the group
`veilcount.account_verifiers` that returns an `AccountVerifier`.

    token = base64url(account) . expiry in seconds since 1970 . base64url(signature of the rest)
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as Base64Error
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from importlib.metadata import entry_points
from pathlib import Path
from typing import Protocol

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from veilcount_serving.errors import SettingsError
from veilcount_serving.owner_files import create_owner_only, read_owner_only

GROUP = "veilcount.account_verifiers"
MOST_ACCOUNT = 256  # bytes of an account id
MOST_TOKEN = 1024  # characters
MOST_DIGITS = 12  # of an expiry
SECRET_BYTES = 32
HMAC_HEAD = b"hmac-sha256 "
_PURPOSE = b"veilcount account 1\0"  # no signature of anything else is an account token
_FIX = "give a file of `veilcount issuer account-key`, or an Ed25519 public key as PEM"


class AccountVerifier(Protocol):
    """Returns the account of a bearer token, or None; its errors are the issuer's, a 500."""

    def __call__(self, token: str, now: datetime) -> str | None:
        """Return an opaque id that is the same whenever this account asks."""


class AccountKey(Protocol):
    """A key that vouches for accounts."""

    def sign(self, message: bytes) -> bytes:
        """Return the signature of a message."""

    def verify(self, message: bytes, signature: bytes) -> bool:
        """Whether this is the signature of a message; in constant time."""


@dataclass(frozen=True, slots=True, repr=False)
class HmacAccountKey:
    """A secret that the app's backend and the issuer share."""

    secret: bytes

    def sign(self, message: bytes) -> bytes:
        """Return the signature of a message."""
        return hmac.digest(self.secret, message, hashlib.sha256)

    def verify(self, message: bytes, signature: bytes) -> bool:
        """Whether this is the signature of a message."""
        return hmac.compare_digest(self.sign(message), signature)


@dataclass(frozen=True, slots=True, repr=False)
class Ed25519AccountKey:
    """The backend's key pair, of which the issuer needs the public key only."""

    public: Ed25519PublicKey
    private: Ed25519PrivateKey | None = None

    def sign(self, message: bytes) -> bytes:
        """Return the signature of a message."""
        if self.private is None:
            raise SettingsError("--key", "(a public key)", "give the private key: it signs")
        return self.private.sign(message)

    def verify(self, message: bytes, signature: bytes) -> bool:
        """Whether this is the signature of a message."""
        try:
            self.public.verify(signature, message)
        except InvalidSignature:
            return False
        return True


@dataclass(frozen=True, slots=True)
class SignedAccountVerifier:
    """Verifies signed account tokens under one key."""

    key: AccountKey

    def __call__(self, token: str, now: datetime) -> str | None:
        """Return the account of a token that is valid now."""
        account, _, signature_part = token.partition(".")
        expiry, _, signature = signature_part.partition(".")
        raw = _decode(signature)
        if len(token) > MOST_TOKEN or raw is None:
            return None
        if not self.key.verify(_PURPOSE + f"{account}.{expiry}".encode(), raw):
            return None
        expires = int(expiry) if expiry.isdecimal() and len(expiry) <= MOST_DIGITS else 0
        claims = _decode(account)
        with suppress(UnicodeDecodeError):
            return claims.decode() if claims and now.timestamp() < expires else None
        return None


def sign_account(key: AccountKey, account: str, expires: datetime) -> str:
    """Return an account token."""
    if not 1 <= len(account.encode()) <= MOST_ACCOUNT:
        raise SettingsError("account", account, f"give an opaque id of 1 to {MOST_ACCOUNT} bytes")
    signed = f"{_encode(account.encode())}.{int(expires.timestamp())}"
    return f"{signed}.{_encode(key.sign(_PURPOSE + signed.encode()))}"


def read_account_key(path: Path) -> AccountKey:
    """Return the key of a file; a secret that others may read is refused."""
    text = path.read_bytes()
    if b"PUBLIC KEY" in text:
        return _ed25519(path, text)
    text = read_owner_only(path)
    if text.startswith(HMAC_HEAD):
        secret = _decode(text.removeprefix(HMAC_HEAD).strip().decode("ascii", "replace"))
        if secret is None or len(secret) < SECRET_BYTES:
            raise SettingsError("account key", str(path), _FIX)
        return HmacAccountKey(secret)
    return _ed25519(path, text)


def create_account_key(path: Path, *, ed25519: bool) -> Path:
    """Create a key that only its owner may read; return the file that the issuer needs."""
    if not ed25519:
        secret = _encode(secrets.token_bytes(SECRET_BYTES))
        create_owner_only(path, HMAC_HEAD + secret.encode() + b"\n")
        return path
    private = Ed25519PrivateKey.generate()
    pem, encoding = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    create_owner_only(path, private.private_bytes(pem, encoding, serialization.NoEncryption()))
    public = path.with_name(f"{path.name}.pub")
    public.write_bytes(
        private.public_key().public_bytes(pem, serialization.PublicFormat.SubjectPublicKeyInfo)
    )
    return public


def load_verifier(name: str) -> AccountVerifier:
    """Return the verifier that an installed package offers under a name."""
    matches = list(entry_points(group=GROUP, name=name))
    if not matches:
        fix = f"no installed package offers it: declare it in the group {GROUP}"
        raise SettingsError("--account-verifier", name, fix)
    verifier: AccountVerifier = matches[0].load()()
    return verifier


def _ed25519(path: Path, text: bytes) -> Ed25519AccountKey:
    try:
        if b"PUBLIC KEY" in text:
            public = serialization.load_pem_public_key(text)
            if isinstance(public, Ed25519PublicKey):
                return Ed25519AccountKey(public)
        else:
            private = serialization.load_pem_private_key(text, None)
            if isinstance(private, Ed25519PrivateKey):
                return Ed25519AccountKey(private.public_key(), private)
    except (ValueError, TypeError) as error:
        raise SettingsError("account key", str(path), _FIX) from error
    raise SettingsError("account key", str(path), _FIX)


def _encode(raw: bytes) -> str:
    return urlsafe_b64encode(raw).rstrip(b"=").decode()


def _decode(text: str) -> bytes | None:
    """Return the bytes of base64url without padding; None if they are not encoded uniquely."""
    try:
        raw = urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except (Base64Error, ValueError):
        return None
    return raw if _encode(raw) == text else None
