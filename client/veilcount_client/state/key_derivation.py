"""Key derivation: keys and secrets of persons from the root secret. No id is ever stored."""

from __future__ import annotations

import hashlib
import hmac
import os

from .interface import KEY_BYTES

ROOT_BYTES = 32
SALT_BYTES = 16


def random_bytes(size: int) -> bytes:
    """Return bytes of the operating system's generator: the one source of all secrets."""
    return os.urandom(size)


def new_root() -> bytes:
    """Return a fresh root secret."""
    return random_bytes(ROOT_BYTES)


def new_salt() -> bytes:
    """Return the salt of a person's secret, which `forget` renews."""
    return random_bytes(SALT_BYTES)


def person_key(root: bytes, person: str) -> bytes:
    """Return the key under which a person is kept; without the root it cannot be guessed."""
    return _derive(root, b"key", person.encode(errors="surrogatepass"))[:KEY_BYTES]


def person_secret(root: bytes, key: bytes, salt: bytes) -> bytes:
    """Return a person's secret, which all their pseudonyms, slots and instants come from."""
    return _derive(root, b"secret", key + salt)


def person_root(root: bytes, key: bytes) -> bytes:
    """Return what decides which collections ask a person, and when: it survives `forget`."""
    return _derive(root, b"person", key)


def _derive(root: bytes, purpose: bytes, subject: bytes) -> bytes:
    return hmac.digest(root, b"veilcount state " + purpose + b"\0" + subject, hashlib.sha256)
