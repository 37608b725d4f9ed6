"""The key that signs an issuer's published numbers.

Its seed is in the vault. Its public half is beside the key lists of each definitions file, as
`token_keys/issuer.pem`, for whoever compares copies.
"""

from __future__ import annotations

from pathlib import Path

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from veilcount_serving.durable_files import sync_path
from veilcount_serving.errors import SettingsError
from veilcount_shared.wire import encode_base64

from .key_vault import NUMBERS, KeyVault

NAME = "token_keys/issuer.pem"


def read_private_key(vault: KeyVault) -> Ed25519PrivateKey:
    """Return the key of a vault, or refuse a vault that has none."""
    seed = vault.read(NUMBERS)
    if seed is None:
        fix = "the key of the published numbers is not there: run `veilcount issuer keys`"
        raise SettingsError("--keys", "", fix)
    return Ed25519PrivateKey.from_private_bytes(seed)


def write_public_key(definitions: Path, vault: KeyVault) -> Ed25519PublicKey:
    """Write the public key beside a definitions file, durably; refuse to replace another one."""
    public = read_private_key(vault).public_key()
    path = definitions.resolve().parent / NAME
    if path.exists():
        if read_public_key(path) != public:
            fix = "it is of another issuer: give the --store or --keys of this one, or move it away"
            raise SettingsError("public key", str(path), fix)
        return public
    pem, spki = serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(public.public_bytes(pem, spki))
    sync_path(path)
    sync_path(path.parent)
    return public


def read_public_key(path: Path) -> Ed25519PublicKey:
    """Return the public key of a file that `veilcount issuer keys` has written."""
    try:
        key = serialization.load_pem_public_key(path.read_bytes())
    except ValueError:
        key = None
    if not isinstance(key, Ed25519PublicKey):
        raise SettingsError("--key", str(path), f"give the issuer's {NAME}")
    return key


def public_text(key: Ed25519PublicKey) -> str:
    """Return a public key as people compare it: 43 characters of base64url."""
    return encode_base64(key.public_bytes_raw())
