"""The door that a device closes its own row at: whoever knows the 16 bytes is their holder."""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from datetime import date

from flask import Blueprint, Response, request

from veilcount_shared.report import PSEUDONYM_BYTES

from ..ingest.decode.json_fast import letters
from ..series.series import Series
from ..service import Aggregator
from ..store import ROW_BYTES
from .auth import Authenticator
from .problems import ProblemError, refusal


def doors(aggregator: Aggregator, authority: Authenticator) -> Blueprint:
    """Return the door."""
    blueprint = Blueprint("pseudonyms", __name__)

    @blueprint.delete("/v1/pseudonyms/<fingerprint>/<pseudonym>")
    def forget(fingerprint: str, pseudonym: str) -> Response:
        """Close a row wherever it stands: no slot of it is free any more."""
        authority.admit_device(request.headers.get("Authorization", ""))
        aggregator.guard.refuse_if_doubted()  # by a wrong day its row would not be looked for
        row = _row(pseudonym)
        series = aggregator.known().catalog.series.get(fingerprint)
        if series is None:
            raise _nothing()
        if not aggregator.store.close_row(series, epochs(series, aggregator.today()), row):
            raise _nothing()
        return Response(status=204)

    return blueprint


def epochs(series: Series, day: date) -> range:
    """Return the epochs in which a row may stand: begun, and not over."""
    if series.linked:
        return range(0 if series.over(0, day) else 1)
    _, newest = series.taken(day)
    every = range(newest + 1)
    return range(
        next((epoch for epoch in every if not series.over(epoch, day)), newest + 1), newest + 1
    )


def _nothing() -> ProblemError:
    return refusal("not-found", "no row of this pseudonym is kept: there is nothing to close")


def _row(pseudonym: str) -> bytes:
    """Return what is kept of a pseudonym: spelled as in a JSON body, or there is no such row."""
    if len(pseudonym) != letters(PSEUDONYM_BYTES) or not pseudonym.isascii():
        raise _nothing()
    raw = urlsafe_b64decode(pseudonym + "==")
    if urlsafe_b64encode(raw) != pseudonym.encode() + b"==":
        raise _nothing()
    return raw[:ROW_BYTES]
