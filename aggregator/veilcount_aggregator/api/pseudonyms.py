"""Endpoint of row-close requests: a device closes its own row."""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from datetime import date

from veilcount_shared.report import PSEUDONYM_BYTES

from ..auth.api_keys import Role
from ..ingest.decode.json_fast import letters
from ..problem_details import ProblemError
from ..series.series import Series
from ..store import ROW_BYTES
from .endpoint import Api, endpoint
from .problems import refusal


@endpoint("DELETE", "/v1/pseudonyms/{fingerprint}/{pseudonym}", Role.DEVICE, statuses=(204,))
def close_row(api: Api, fingerprint: str, pseudonym: str) -> None:
    """Close a pseudonym's row: none of its slots accepts a report from now on.

    Knowledge of the 16 bytes of the pseudonym authorizes it.
    """
    aggregator = api.aggregator
    aggregator.guard.refuse_if_doubted()  # on a wrong day its row would not be looked for
    row = _row(pseudonym)
    series = aggregator.known().catalog.series.get(fingerprint)
    if series is None:
        raise _not_found()
    if not aggregator.store.close_row(series, epochs(series, aggregator.today()), row):
        raise _not_found()


def epochs(series: Series, day: date) -> range:
    """Return the epochs in which a row may stand: begun, and not over."""
    if series.linked:
        return range(0 if series.over(0, day) else 1)
    _, newest = series.open_periods(day)
    every = range(newest + 1)
    return range(
        next((epoch for epoch in every if not series.over(epoch, day)), newest + 1), newest + 1
    )


def _not_found() -> ProblemError:
    return refusal("not-found", "this pseudonym has no row: there is nothing to close")


def _row(pseudonym: str) -> bytes:
    """Return the stored prefix of a pseudonym in base64url, as in a JSON body."""
    if len(pseudonym) != letters(PSEUDONYM_BYTES) or not pseudonym.isascii():
        raise _not_found()
    raw = urlsafe_b64decode(pseudonym + "==")
    if urlsafe_b64encode(raw) != pseudonym.encode() + b"==":
        raise _not_found()
    return raw[:ROW_BYTES]
