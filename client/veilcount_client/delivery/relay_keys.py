"""The file of the gateway's public keys, which comes with the app."""

from __future__ import annotations

from pathlib import Path

from ..errors import NotUsable


def read_relay_keys(path: str | None) -> bytes:
    """Return what the file holds."""
    if path is None:
        raise NotUsable(
            "relay_keys: give the file of `veilcount relay-keys create --out`; a key that was"
            " fetched could be one person's alone"
        )
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise NotUsable(f"relay_keys: {error.strerror}: check the path") from error
