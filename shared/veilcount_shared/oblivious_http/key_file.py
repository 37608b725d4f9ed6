"""The file of gateway keys that is shipped with an app, and read by shufflers: `relay.keys`.

JSON: {"relay_keys": 1, "keys": [{"from": "2026-12-01", "config": "hexadecimal"}, ...]}, the newest
first. A key configuration stays as its bytes are: a shuffler mixes the reports that are sealed
under one and the same.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from ..errors import ObliviousError
from .key_config import KeyConfig

FORMAT = 1
MOST_KEYS = 64


@dataclass(frozen=True, slots=True)
class RelayKey:
    """A key configuration, and the first day of the periods that it is for."""

    start: date
    encoded: bytes  # the whole configuration
    config: KeyConfig  # what of it is used here


def encode_key_file(keys: Sequence[tuple[date, bytes]]) -> str:
    """Return the file of keys, the newest first: the first day of each and its configuration."""
    rows = [
        {"from": start.isoformat(), "config": encoded.hex()}
        for start, encoded in sorted(keys, reverse=True)
    ]
    return json.dumps({"relay_keys": FORMAT, "keys": rows}, indent=1) + "\n"


def decode_key_file(text: str | bytes) -> list[RelayKey]:
    """Return the keys that can be used here, the newest first; raise if there are none."""
    try:
        document = json.loads(text)
        if document["relay_keys"] != FORMAT:
            raise ObliviousError("keys", f"this release reads format {FORMAT} of relay_keys")
        rows = [
            (date.fromisoformat(row["from"]), bytes.fromhex(row["config"]))
            for row in document["keys"][:MOST_KEYS]
        ]
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        if isinstance(error, ObliviousError):
            raise
        fix = "give the file of `veilcount relay-keys create --out`"
        raise ObliviousError("keys", fix) from error
    keys = []
    for start, encoded in sorted(rows, reverse=True):
        if (config := KeyConfig.decode(encoded)) is not None:
            keys.append(RelayKey(start, encoded, config))
    if not keys:
        raise ObliviousError("keys", "no configuration for X25519 and HKDF-SHA256")
    return keys


def key_for(keys: Sequence[RelayKey], period_start: date) -> RelayKey | None:
    """Return the newest key whose first day is not after that of a period; None: there is none."""
    return next((key for key in keys if key.start <= period_start), None)
