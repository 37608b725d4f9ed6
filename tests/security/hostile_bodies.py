"""Bodies that anybody can send to make a worker compute: what each of them makes the most of."""

from __future__ import annotations

import gzip
import secrets
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import cycle, islice, starmap
from pathlib import Path

from veilcount_aggregator.records.definitions import read_source
from veilcount_shared import Collection
from veilcount_shared.limits import PSEUDONYM_BYTES, TOKEN_BYTES
from veilcount_shared.report import (
    KEYLESS_BODY_PSEUDONYMS,
    MAX_MESSAGE,
    MAX_PADDING,
    MAX_REPORTS,
    MAX_SERIES,
    Batch,
    Report,
)
from veilcount_shared.tokens import PublicKey, digest, encode_key, encode_key_list, key_list_name
from veilcount_shared.wire import BINARY_TYPE, JSON_TYPE, MAX_BODY, encode_binary, encode_json

WIDE_REPORTS = 680  # of the widest messages: nearly as many as a body holds
Body = tuple[str, str, bytes]  # content type, content encoding, bytes

TABLE = """
[{name}]
question = "Is it on?"
boolean = true
epsilon = 1
unit = "day"
from = {start}
until = {until}
"""


def define(file: Path, definitions: int) -> tuple[list[Collection], Collection]:
    """Write so many definitions without tokens and one with; none of its keys signs anything."""
    start = datetime.now(UTC).date()
    until = start + timedelta(days=60)
    moduli = (secrets.randbits(2048) | 1 | 1 << 2047 for _ in range(60))
    keys = [encode_key(PublicKey(modulus)) for modulus in moduli]
    key_file = file.parent / key_list_name(digest(keys))
    key_file.parent.mkdir()
    key_file.write_text(encode_key_list(keys))
    names = [f"plain_{place}" for place in range(definitions)]
    tables = [TABLE.format(name=name, start=start, until=until) for name in (*names, "tokens")]
    pinned = f'answers = 1\nlinkage = "token"\ntokens = "{digest(keys)}"\n'
    file.write_text('app = "bench"\n' + "".join(tables) + pinned)
    collections = read_source(file).collections()
    return [collections[name] for name in names], collections["tokens"]


def report(collection: Collection, pseudonym: bytes = b"", slot: int = 0) -> Report:
    """Return a report of the first period; with linkage "token" its token is forged."""
    name = pseudonym or secrets.token_bytes(PSEUDONYM_BYTES)
    token = secrets.token_bytes(TOKEN_BYTES) if collection.tokens else b""
    return Report(collection.fingerprint, 0, 0, name, slot, collection.pack(0), token)


def forged(collection: Collection, pseudonyms: int) -> bytes:
    """Return as many forged tokens as a body holds, under so many pseudonyms."""
    names = [secrets.token_bytes(PSEUDONYM_BYTES) for _ in range(pseudonyms)]
    reports = (report(collection, name) for name in islice(cycle(names), MAX_REPORTS))
    return encode_binary(Batch(tuple(reports)))


def unknown(series: int, widths: int, width: int = 1) -> bytes:
    """Return as many reports as a body holds, of series that no server has."""
    reports = (
        Report(f"{place:064x}", 0, 0, bytes(16), 0, bytes(width + place % widths))
        for place in islice(cycle(range(series)), MAX_REPORTS)
    )
    return encode_binary(Batch(tuple(reports)))


def spoilt(body: bytes) -> bytes:
    """Return a body whose last byte is wrong, so that all of it is looked at."""
    return body[:-1] + b"\1"


def reports(collections: Sequence[Collection], pseudonyms: int) -> bytes:
    """Return as many reports as a body holds, of these definitions and of so many new devices."""
    names = [secrets.token_bytes(PSEUDONYM_BYTES) for _ in range(pseudonyms)]
    pairs = zip(cycle(collections), sorted(names * len(collections)), strict=False)
    return encode_binary(
        Batch(tuple(islice(starmap(report, cycle(pairs)), MAX_REPORTS)), padding=1)
    )


def makers(plain: Sequence[Collection], tokens: Collection) -> dict[str, Callable[[], Body]]:
    """Return what makes each body, a new one each time; `plain` are definitions without tokens."""
    one = report(plain[0])
    wide = Report("ab" * 32, 0, 0, bytes(PSEUDONYM_BYTES), 0, bytes(MAX_MESSAGE))
    every_width = unknown(MAX_SERIES, MAX_SERIES)
    text = encode_json(Batch((one,) * MAX_REPORTS))
    binary: dict[str, Callable[[], bytes]] = {
        "forged tokens, a thousand pseudonyms": lambda: forged(tokens, MAX_REPORTS),
        "forged tokens, sixteen pseudonyms": lambda: forged(tokens, KEYLESS_BODY_PSEUDONYMS),
        "forged tokens, one pseudonym": lambda: forged(tokens, 1),
        "a thousand reports": lambda: reports(plain[:1], 1),
        "a thousand reports, sixteen pseudonyms": lambda: reports(
            plain[:1], KEYLESS_BODY_PSEUDONYMS
        ),
        "a thousand reports, all definitions": lambda: reports(plain, KEYLESS_BODY_PSEUDONYMS),
        "a thousand reports, wrong padding": lambda: spoilt(reports(plain[:1], 1)),
        "wide reports, a byte too many": lambda: (
            encode_binary(Batch((wide,) * WIDE_REPORTS)) + b"\0"
        ),
        "unknown series": lambda: unknown(MAX_SERIES, 1),
        "unknown series of all widths": lambda: every_width,
        "unknown series, wrong end": lambda: spoilt(every_width + b"\0"),
        "more reports than a body holds": lambda: (
            unknown(1, 1)[:42] + b"\xf0\0" + unknown(1, 1)[44:-2] * 31
        ),
        "padding": lambda: encode_binary(Batch((one,), padding=MAX_PADDING)),
        "zero bytes": lambda: bytes(MAX_BODY),
        "a head and zero bytes": lambda: encode_binary(Batch((one,))).ljust(MAX_BODY, b"\0"),
    }
    return {name: partial(_binary, make) for name, make in binary.items()} | {
        "JSON": lambda: (JSON_TYPE, "", text),
        "compressed JSON": lambda: (JSON_TYPE, "gzip", gzip.compress(text)),
        "compressed zero bytes": lambda: (BINARY_TYPE, "gzip", gzip.compress(bytes(MAX_BODY))),
    }


def _binary(make: Callable[[], bytes]) -> Body:
    return BINARY_TYPE, "", make()
