"""The aggregator, as a shuffler calls it: parts, records, and what its clock says."""

from __future__ import annotations

import http.client
import json
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Any, Protocol
from urllib.parse import urlsplit

from veilcount_shared.shuffling.batch_record import RECORD_TYPE
from veilcount_shared.shuffling.part import PART_TYPE

from .errors import AggregatorAway, NotTaken, ShufflerError

PARTS_PATH, RECORDS_PATH, LIVE_PATH = "/v1/batches", "/v1/batch-records", "/health/live"
TIMEOUT = 60.0
MAX_ANSWER = 1 << 20


class BatchReceiver(Protocol):
    """Where batches go."""

    def now(self) -> datetime:
        """Return what its clock says; AggregatorAway: it does not answer."""

    def take_part(self, part: bytes) -> list[int]:
        """Hand over a part; return which parts of its batch are missing then."""

    def take_record(self, record: bytes) -> None:
        """Hand over the record of a batch."""


@dataclass(frozen=True, slots=True)
class HttpAggregator:
    """An aggregator at a URL."""

    url: str
    api_key: str
    timeout: float = TIMEOUT

    def __post_init__(self) -> None:
        check_target(self.url)

    def now(self) -> datetime:
        """Return what its clock says."""
        _, date, _ = self._request("GET", LIVE_PATH)
        try:
            return parsedate_to_datetime(date).astimezone(UTC)
        except (TypeError, ValueError):
            raise AggregatorAway("the aggregator names no date") from None

    def take_part(self, part: bytes) -> list[int]:
        """Hand over a part; return which parts of its batch are missing then."""
        status, _, body = self._request("POST", PARTS_PATH, part, PART_TYPE)
        _require_taken(status, body)
        missing = _document(body).get("missing")
        if not isinstance(missing, list) or not all(isinstance(number, int) for number in missing):
            raise AggregatorAway("its answer names no missing parts")
        return missing

    def take_record(self, record: bytes) -> None:
        """Hand over the record of a batch."""
        status, _, body = self._request("POST", RECORDS_PATH, record, RECORD_TYPE)
        _require_taken(status, body)

    def _request(
        self, method: str, path: str, body: bytes = b"", content_type: str = ""
    ) -> tuple[int, str, bytes]:
        target = urlsplit(self.url)
        kind = (
            http.client.HTTPSConnection if target.scheme == "https" else http.client.HTTPConnection
        )
        headers = {"Content-Type": content_type} if content_type else {}
        if self.api_key and method == "POST":
            headers["Authorization"] = f"Bearer {self.api_key}"
        connection = kind(target.netloc, timeout=self.timeout)
        try:
            connection.request(method, target.path.rstrip("/") + path, body or None, headers)
            response = connection.getresponse()
            return response.status, response.getheader("Date", ""), response.read(MAX_ANSWER)
        except (OSError, http.client.HTTPException) as error:
            raise AggregatorAway(f"the aggregator is away: {type(error).__name__}") from error
        finally:
            connection.close()


def check_target(url: str) -> None:
    """Refuse what is no URL of an aggregator."""
    target = urlsplit(url)
    if target.scheme not in {"http", "https"} or not target.hostname or target.query:
        raise ShufflerError(f"--to: {url}: give the aggregator's URL, https://stats.example.org")


def _require_taken(status: int, body: bytes) -> None:
    if status == HTTPStatus.OK:
        return
    if status == HTTPStatus.TOO_MANY_REQUESTS or status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        raise AggregatorAway(f"the aggregator answered {status}")
    raise NotTaken(status, str(_document(body).get("type", "")).rpartition("#")[2])


def _document(body: bytes) -> dict[str, Any]:
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):  # brackets within brackets
        return {}
    return document if isinstance(document, dict) else {}
