"""Open counters: the tallies of one period, with all that a stranger needs to estimate from them.

The counters of a local collection are sums of answers that devices randomized, so whoever has them
learns no more of an answer than its epsilon allows. A file is one line of JSON:

    {"open_counters": 1, "collection", "fingerprint", "period", "from", "to", "P", "Q", "reports",
     "by_segment", "counters": [[...], ...], "definitions": [...], "signature"}

`definitions` are canonical forms: the collection's, and of those that it is declared with. What
follows from the definition and the counters is written out for people, and is checked. S is an
Ed25519 signature [RFC 8032] of the line with an empty signature, after a fixed text.
"""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import numpy as np

from veilcount_shared import Collection
from veilcount_shared.collection.canonical import canonical_fields
from veilcount_shared.collection.compiled import parse_canonical
from veilcount_shared.domain import format_fraction
from veilcount_shared.errors import VeilcountError
from veilcount_shared.installing import install
from veilcount_shared.schedule import period_end, period_start
from veilcount_shared.wire import encode_base64

from ..errors import CountsError
from ..mechanisms import handler_of
from ..series.hash_counts import DENSE_LIMIT
from ..series.packed_rows import Counters
from ..series.series import Series
from .counters_source import CountersSource, require_countable

FORMAT = 1
PURPOSE = b"veilcount open counters 1\0"  # no signature of anything else is one of a file
MOST_REPORTS = 1 << 53
DAY = timedelta(days=1)
NO_FILE = "give a file of open counters, as a page of published figures links it"
SIGNED = "its signature is not of this key: it was changed, or another key signed it"


@dataclass(frozen=True, slots=True, eq=False)
class OpenCounters:
    """The counters of one period: of each cell of its segments, or of all of them together.

    `related` are the collections that this one is declared with: of its group, and its twin.
    """

    collection: Collection
    period: int
    counters: tuple[Counters, ...]
    by_segment: bool
    related: tuple[Collection, ...] = ()
    signature: str = ""

    @property
    def reports(self) -> int:
        """How many reports are counted."""
        return sum(map(handler_of(self.collection.mechanism).report_count, self.counters))

    def document(self) -> dict[str, Any]:
        """Return the file as an object."""
        collection, mechanism = self.collection, self.collection.mechanism
        first = period_start(collection, self.period).date()
        last = period_end(collection, self.period).date() - DAY
        return {
            "open_counters": FORMAT,
            "collection": collection.name,
            "fingerprint": collection.fingerprint,
            "period": self.period,
            "from": first.isoformat(),
            "to": last.isoformat(),
            "P": _exactly(getattr(mechanism, "P", None)),
            "Q": _exactly(getattr(mechanism, "Q", None)),
            "reports": self.reports,
            "by_segment": self.by_segment,
            "counters": [counters.tolist() for counters in self.counters],
            "definitions": [
                canonical_fields(definition, definition.mechanism)
                for definition in (collection, *self.related)
            ],
            "signature": self.signature,
        }

    def encode(self) -> bytes:
        """Return the file: the same bytes for the same counters."""
        text = json.dumps(self.document(), separators=(",", ":"), ensure_ascii=False)
        return text.encode() + b"\n"

    def signed_message(self) -> bytes:
        """Return the bytes that are signed."""
        return PURPOSE + replace(self, signature="").encode()

    def with_signature(self, signature: bytes) -> OpenCounters:
        """Sign the message, and return the file with its signature."""
        return replace(self, signature=encode_base64(signature))

    def require_signature(self, key: str) -> None:
        """Refuse counters that the holder of a key did not sign: 43 characters, or PEM."""
        try:
            from cryptography.exceptions import InvalidSignature  # noqa: PLC0415 - figures need none
        except ModuleNotFoundError as missing:
            raise VeilcountError(f"a signature needs cryptography: {install('relay')}") from missing
        public = _public_key(key)
        try:
            public.verify(_bytes_of(self.signature), self.signed_message())
        except (InvalidSignature, ValueError) as error:
            raise CountsError("signature", self.signature, SIGNED) from error


def _exactly(number: Any) -> str | None:
    return None if number is None else format_fraction(number)


def _public_key(text: str) -> Any:
    """Return the public key of its text or PEM, or refuse it."""
    from cryptography.hazmat.primitives import serialization  # noqa: PLC0415 - likewise
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey  # noqa: PLC0415

    try:
        if "PUBLIC KEY" not in text:
            return Ed25519PublicKey.from_public_bytes(_bytes_of(text.strip()))
        key = serialization.load_pem_public_key(text.encode())
    except ValueError:
        key = None
    if not isinstance(key, Ed25519PublicKey):
        fix = "give the public key of `veilcount publish-key`: its file, or its 43 characters"
        raise CountsError("key", text.strip()[:60], fix)
    return key


def _bytes_of(text: str) -> bytes:
    """Return the bytes of base64url without padding, or raise ValueError."""
    return urlsafe_b64decode(text + "=" * (-len(text) % 4))


# -- a file is read --------------------------------------------------------------------------------


def read_open_counters(content: bytes, key: str | None = None) -> OpenCounters:
    """Return the counters of a file, or refuse it: what it states must follow from what it holds.

    With a `key` it must be signed by it too.
    """
    document = _document(content)
    for name in ("definitions", "counters", "period", "by_segment", "signature"):
        if not isinstance(document.get(name), _TYPES[name]) or document.get(name) is None:
            raise CountsError(name, document.get(name), NO_FILE)
    collection, *related = _collections(document["definitions"])
    require_countable(collection)
    period = document["period"]
    if period not in range(collection.periods) or isinstance(period, bool):
        raise CountsError("period", period, f"its definition has {collection.periods} periods")
    by_segment = document["by_segment"]
    cells = collection.cells if by_segment else 1
    counters = _counters(collection, document["counters"], cells)
    result = OpenCounters(
        collection, period, counters, by_segment, tuple(related), document["signature"]
    )
    _require_same(json.loads(result.encode()), document)
    if key is not None:
        result.require_signature(key)
    return result


_TYPES: Mapping[str, type] = {
    "definitions": list,
    "counters": list,
    "period": int,
    "by_segment": bool,
    "signature": str,
}


def _document(content: bytes) -> dict[str, Any]:
    try:
        document = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise CountsError("file", content[:20].decode(errors="replace"), NO_FILE) from error
    if not isinstance(document, dict) or "open_counters" not in document:
        raise CountsError("file", content[:20].decode(errors="replace"), NO_FILE)
    if document["open_counters"] != FORMAT:
        fix = f"this release reads format {FORMAT}: use the release that wrote it, or a newer one"
        raise CountsError("open_counters", document["open_counters"], fix)
    return document


def _collections(forms: Sequence[Any]) -> list[Collection]:
    """Return the collections of canonical forms, the file's own first."""
    try:
        collections = parse_canonical({form["name"]: form for form in forms})
        return [collections[form["name"]] for form in forms]
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        if not forms or not isinstance(error, VeilcountError):
            fix = "its definitions are none of this protocol: the file was changed"
            raise CountsError("definitions", len(forms), fix) from error
        raise


def _counters(collection: Collection, rows: Sequence[Any], cells: int) -> tuple[Counters, ...]:
    size = collection.mechanism.counters
    if size > DENSE_LIMIT or len(rows) != cells:
        raise CountsError("counters", len(rows), f"give {cells} lists, one for each cell")
    for row in rows:
        if not isinstance(row, list) or len(row) != size:
            length = len(row) if isinstance(row, list) else row
            raise CountsError("counters", length, f"each list has {size:,} counters")
        for number in row:
            if type(number) is not int or not 0 <= number < MOST_REPORTS:
                raise CountsError("counters", number, "each is a whole number, 0 or more")
    return tuple(np.array(row, np.int64) for row in rows)


def _require_same(derived: Mapping[str, Any], document: Mapping[str, Any]) -> None:
    """Require what follows from definition and counters, and nothing else."""
    for name, value in document.items():
        if name not in derived:
            raise CountsError(name, value, "no such field is in this format: remove it")
    for name, value in derived.items():
        if name not in document or document[name] != value:
            stated = f"{value}" if isinstance(value, str | int) else "another one"
            fix = f"definition and counters give {stated}: the file was changed"
            raise CountsError(name, document.get(name), fix)


# -- files together --------------------------------------------------------------------------------


def join_open_counters(files: Sequence[OpenCounters]) -> CountersSource:
    """Return the periods of one definition together, as `estimate_counters` takes them."""
    if not files:
        raise CountsError("files", 0, NO_FILE)
    collection = files[0].collection
    by_period: dict[int, OpenCounters] = {}
    for file in files:
        if file.collection.fingerprint != collection.fingerprint:
            fix = (
                f"the first file is of {collection.fingerprint[:12]}: give files of one definition"
            )
            raise CountsError("fingerprint", file.collection.fingerprint[:12], fix)
        if file.period in by_period:
            raise CountsError("period", file.period, "two files are of it: give each period once")
        by_period[file.period] = file
    by_segment = all(file.by_segment for file in files)
    counters = {
        place: counts for file in files for place, counts in _by_cell(file, by_segment=by_segment)
    }
    last = period_end(collection, max(by_period)).date() - DAY
    return CountersSource(
        Series(collection, closed=True),
        counters,
        max(last, collection.start) + DAY,
        by_segment=by_segment,
        first=period_start(collection, min(by_period)).date(),
        last=last,
    )


def _by_cell(file: OpenCounters, *, by_segment: bool) -> list[tuple[tuple[int, int], Counters]]:
    if not by_segment:
        return [((file.period, 0), np.sum(file.counters, axis=0))]
    return [((file.period, cell), counters) for cell, counters in enumerate(file.counters)]
