"""A backup of an issuer's secrets: one file, owner-only, encrypted under a passphrase if one is
given (scrypt [RFC 7914] and AES-256-GCM).

    first line, which names the format; for an encrypted one 16 bytes salt, 12 bytes nonce; entries
"""

from __future__ import annotations

import json
import os
from base64 import b64decode, b64encode
from pathlib import Path

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

from veilcount_serving.errors import SettingsError
from veilcount_serving.owner_files import create_owner_only, read_owner_only

from .key_vault import KeyVault

PLAIN, ENCRYPTED = b"veilcount issuer keys 1\n", b"veilcount issuer keys 1, encrypted\n"
SALT_BYTES, NONCE_BYTES, KEY_BYTES = 16, 12, 32
COST = 1 << 16  # 64 MB, 0.2 s


def export_keys(vault: KeyVault, path: Path, passphrase: bytes | None) -> int:
    """Write all entries of a vault to a new file; return how many they are."""
    entries = {name: vault.read(name) or b"" for name in sorted(vault.names())}
    content = json.dumps({name: b64encode(raw).decode() for name, raw in entries.items()}).encode()
    try:
        create_owner_only(path, _encrypt(content, passphrase) if passphrase else PLAIN + content)
    except FileExistsError as error:
        raise SettingsError("file", str(path), "it exists: give a new name") from error
    return len(entries)


def is_encrypted(path: Path) -> bool:
    """Whether a backup needs its passphrase."""
    return read_owner_only(path).startswith(ENCRYPTED)


def import_keys(vault: KeyVault, path: Path, passphrase: bytes | None) -> int:
    """Add what a backup has and the vault lacks; return how many entries those are."""
    backup = _parse(path, passphrase)
    there = {name: vault.read(name) for name in vault.names() & backup.keys()}
    if different := [name for name, content in there.items() if content != backup[name]]:
        fix = f"the vault has another {min(different)}: it is of another issuer, give an empty one"
        raise SettingsError("file", str(path), fix)
    vault.add(backup)
    return len(backup) - len(there)


def _parse(path: Path, passphrase: bytes | None) -> dict[str, bytes]:
    content = read_owner_only(path)
    if content.startswith(ENCRYPTED):
        content = _decrypt(path, content.removeprefix(ENCRYPTED), passphrase or b"")
    elif content.startswith(PLAIN):
        content = content.removeprefix(PLAIN)
    else:
        raise SettingsError("file", str(path), "give a file of `veilcount issuer keys export`")
    return {name: b64decode(text) for name, text in json.loads(content).items()}


def _encrypt(content: bytes, passphrase: bytes) -> bytes:
    salt, nonce = os.urandom(SALT_BYTES), os.urandom(NONCE_BYTES)
    sealed = AESGCM(_derive(passphrase, salt)).encrypt(nonce, content, ENCRYPTED)
    return ENCRYPTED + salt + nonce + sealed


def _decrypt(path: Path, content: bytes, passphrase: bytes) -> bytes:
    salt, ciphertext = content[:SALT_BYTES], content[SALT_BYTES:]
    nonce, sealed = ciphertext[:NONCE_BYTES], ciphertext[NONCE_BYTES:]
    try:
        return AESGCM(_derive(passphrase, salt)).decrypt(nonce, sealed, ENCRYPTED)
    except (InvalidTag, ValueError) as error:
        fix = "another passphrase, or the file is damaged"
        raise SettingsError("file", str(path), fix) from error


def _derive(passphrase: bytes, salt: bytes) -> bytes:
    return Scrypt(salt=salt, length=KEY_BYTES, n=COST, r=8, p=1).derive(passphrase)
