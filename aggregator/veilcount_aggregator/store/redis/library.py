"""The function library that does all writing, as the Lua files beside it tell it.

Its name carries a version, so that servers of two releases can share one Redis while they change
places. Whatever changes what a function takes, keeps or returns gets the next number.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files

import msgspec

from veilcount_shared.verdict import Verdict

from .. import memory
from ..contract import CODES

LIBRARY = "veilcount_2"
PARTS = ("ledger", "guard", "tallies", "intake", "keeping", "shelf", "register")

_TOLD = (
    Verdict.COUNTED,
    Verdict.DUPLICATE,
    Verdict.STALE,
    Verdict.FULL,
    Verdict.OVER_BUDGET,
)

#: the account of counters, one formula for Lua and Python
_SIZES = (
    "PAGE",
    "SPARSE",
    "COUNTER_BYTES",
    "TALLY_BYTES",
    "PAGE_BYTES",
    "ENTRY_BYTES",
    "PAGES_A_BYTE",
)


@cache
def source() -> str:
    """Return the whole library; the parts are one chunk of Lua, in this order."""
    folder = files(__package__) / "lua"
    constants = [f"local {verdict.name} = {CODES[verdict]}" for verdict in _TOLD]
    sizes = [f"local {name} = {getattr(memory, name)}" for name in _SIZES]
    head = [f"#!lua name={LIBRARY}", f"local LIBRARY = '{LIBRARY}'", *constants, *sizes]
    return "\n".join([*head, *((folder / f"{part}.lua").read_text("utf-8") for part in PARTS)])


def call(name: str, base: bytes, *given: bytes | str | int) -> tuple[bytes | str | int, ...]:
    """Return the command that calls one of its functions on the keys of a base."""
    return ("FCALL", f"{LIBRARY}_{name}", 1, base, *given)


#: arguments of more than one part, as Lua takes them apart
pack = msgspec.msgpack.Encoder().encode


def raw(data: bytes) -> msgspec.Raw:
    """Return bytes for `pack`. Redis's decoder has no binary type, only strings of any bytes."""
    return msgspec.Raw(b"\xdb" + len(data).to_bytes(4, "big") + data)
