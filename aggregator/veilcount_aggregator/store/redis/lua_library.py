"""The Lua function library of the store, made of the files in `lua/`.

Its name, and so the name of each function, is derived from its source: no change of the Lua can be
shipped under a name that is in use. Libraries of two releases stand side by side in one Redis,
which servers of both share during an upgrade; each is loaded into a server when a call finds it
missing there. A library that no release uses any more costs some 20 kB until it is deleted.
"""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.resources import files

import msgspec

from veilcount_shared.verdict import Verdict

from .. import tally_size
from ..series_reports import CODES, HOURLY_FULL

DIGITS = 12
PARTS = ("ledger", "guard", "tallies", "commit", "retention", "records", "batches", "register")

_VERDICTS = (Verdict.COUNTED, Verdict.DUPLICATE, Verdict.STALE, Verdict.FULL, Verdict.OVER_BUDGET)

#: the sizes of tallies, the same for Lua and Python
_SIZES = ("PAGE", "SPARSE", "PAGES_A_BYTE", "DENSE_LIMIT", "HASH_PAGE")


@cache
def body() -> str:
    """Return the library without its name; the parts are one chunk of Lua, in this order."""
    folder = files(__package__) / "lua"
    constants = [f"local {verdict.name} = {CODES[verdict]}" for verdict in _VERDICTS]
    constants.append(f"local DEFERRED = {HOURLY_FULL}")
    sizes = [f"local {name} = {getattr(tally_size, name)}" for name in _SIZES]
    parts = ((folder / f"{part}.lua").read_text("utf-8") for part in PARTS)
    return "\n".join([*constants, *sizes, *parts])


def name_of(body: str) -> str:
    """Return the name of a library: another source has another name."""
    return f"veilcount_{hashlib.sha256(body.encode()).hexdigest()[:DIGITS]}"


LIBRARY = name_of(body())


@cache
def source() -> str:
    """Return the whole library."""
    return f"#!lua name={LIBRARY}\nlocal LIBRARY = '{LIBRARY}'\n{body()}"


def call(name: str, base: bytes, *arguments: bytes | str | int) -> tuple[bytes | str | int, ...]:
    """Return the command that calls one of its functions on the keys of a base."""
    return ("FCALL", f"{LIBRARY}_{name}", 1, base, *arguments)


#: functions whose reply has the height and the life of the shard before the result
RAISING = frozenset({"commit", "close_row", "change_records", "change_record", "change_batch"})
LIFE_PLACE = 5  # of the words of a guarded call: the life in which the caller has compared heights

#: arguments of more than one part, as Lua takes them apart
pack = msgspec.msgpack.Encoder().encode


def raw(data: bytes) -> msgspec.Raw:
    """Return bytes for `pack`. Redis's decoder has no binary type, only strings of any bytes."""
    return msgspec.Raw(b"\xdb" + len(data).to_bytes(4, "big") + data)
