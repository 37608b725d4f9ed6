"""The atomic steps of Redis: the Lua files of this package, one step each.

Each file begins with its flags (`#!lua flags=no-writes`). `common.lua` and `outbox.lua` are put
before every step, with the constants that Python knows.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import files

from .interface import KEPT, KEY_BYTES, PUT_OFF, ROW_CLOSED
from .redis_codec import REPORT

BUCKETS = 4096
PRELUDE = ("common", "outbox")

_HEAD = 2 + REPORT.size  # bytes before a report's message: its series, and the rest
_CONSTANTS = {
    "REMEMBERED": 60,  # seconds for which a lost reply can be read again
    "KEPT": KEPT,
    "ROW_CLOSED": ROW_CLOSED,
    "PUT_OFF": PUT_OFF,
    "HEAD": _HEAD,
    "HEADS": 6 + KEY_BYTES + _HEAD,  # and before that, its number and its person
}


@cache
def load_scripts() -> Mapping[str, str]:
    """Return the source of every step, by its name."""
    sources = {
        file.name.removesuffix(".lua"): file.read_text("utf-8")
        for file in (files(__package__) / "lua").iterdir()
    }
    constants = "".join(f"local {name} = {value}\n" for name, value in _CONSTANTS.items())
    prelude = constants + "".join(sources.pop(name) for name in PRELUDE)
    return {name: _with_prelude(source, prelude) for name, source in sources.items()}


def _with_prelude(source: str, prelude: str) -> str:
    flags, _, body = source.partition("\n")
    return f"{flags}\n{prelude}{body}"
