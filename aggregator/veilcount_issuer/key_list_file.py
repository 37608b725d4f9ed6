"""The public keys of a collection beside its definitions: `token_keys/<digest>.json`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from veilcount_serving.durable_files import sync_path
from veilcount_shared import Collection
from veilcount_shared.errors import DefinitionError, TokenError
from veilcount_shared.tokens import (
    PublicKey,
    check_key_list,
    decode_key_list,
    digest,
    encode_key_list,
    key_list_name,
)


def key_list_path(definitions: Path, pinned: str) -> Path:
    """Return where the key list of a digest is."""
    return definitions.resolve().parent / key_list_name(pinned)


def write_key_list(definitions: Path, keys: Sequence[bytes]) -> str:
    """Write a list durably; return its digest."""
    pinned = digest(keys)
    path = key_list_path(definitions, pinned)
    path.parent.mkdir(exist_ok=True)
    path.write_text(encode_key_list(keys))
    sync_path(path)
    sync_path(path.parent)
    return pinned


def read_key_list(definitions: Path, collection: Collection) -> tuple[list[PublicKey], bytes]:
    """Return the keys that a definition pins, in the order of its periods, and the list as JSON."""
    pinned = collection.tokens or ""
    path = key_list_path(definitions, pinned)
    try:
        keys = decode_key_list(path.read_bytes())
        return check_key_list(keys, collection.periods, pinned), encode_key_list(keys).encode()
    except (OSError, TokenError) as error:
        why = "is missing" if isinstance(error, FileNotFoundError) else "holds other keys"
        fix = (
            f"{key_list_name(pinned)} {why}: put it back; or remove this line and run `veilcount"
            " issuer keys` for new keys, which makes it another collection"
        )
        place = {"collection": collection.name, "file": definitions.name}
        raise DefinitionError("tokens", pinned, fix, **place) from error
