"""The key that signs published counters: a file that its owner alone may read."""

from __future__ import annotations

from pathlib import Path

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from veilcount_serving.errors import SettingsError, system_reason
from veilcount_serving.owner_files import create_owner_only, read_owner_only
from veilcount_shared.wire import encode_base64

OPTION = "--publish-key"
FIX = "give a file of `veilcount publish-key`"


def create_publishing_key(path: Path) -> Ed25519PrivateKey:
    """Create the key, and its public half next to it; FileExistsError: there is one."""
    key = Ed25519PrivateKey.generate()
    pem, encoding = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    create_owner_only(path, key.private_bytes(pem, encoding, serialization.NoEncryption()))
    public_file(path).write_bytes(public_pem(key))
    return key


def public_file(path: Path) -> Path:
    """Return the file of the public half."""
    return path.with_name(f"{path.name}.pub")


def public_pem(key: Ed25519PrivateKey) -> bytes:
    """Return the public half as a file."""
    spki = serialization.PublicFormat.SubjectPublicKeyInfo
    return key.public_key().public_bytes(serialization.Encoding.PEM, spki)


def public_text(key: Ed25519PrivateKey) -> str:
    """Return the public half as people compare it: 43 characters of base64url."""
    return encode_base64(key.public_key().public_bytes_raw())


def read_publishing_key(path: Path) -> Ed25519PrivateKey:
    """Return the key of a file, or refuse another file."""
    try:
        key = serialization.load_pem_private_key(read_owner_only(path), None)
    except OSError as error:
        raise SettingsError(OPTION, str(path), f"{system_reason(error)}: {FIX}") from error
    except (ValueError, TypeError) as error:
        raise SettingsError(OPTION, str(path), FIX) from error
    if not isinstance(key, Ed25519PrivateKey):
        raise SettingsError(OPTION, str(path), FIX)
    return key
