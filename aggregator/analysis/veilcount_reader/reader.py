"""The reader: an address, a key, and a method for each endpoint.

ReaderError
  x Unreachable       no aggregator answered at the address
  x KeyRefused        no key, an unknown one, or one of another role (401, 403)
  x NotFound          no collection of this name (404)
  x AnswerRefused     the query cannot be answered: `field` is the parameter, the text names the fix
  x NotConfirmed      a release that nobody confirmed: nothing was spent
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import date
from fractions import Fraction
from typing import Any

import requests

from veilcount_analysis.text import result_pages

from .http_client import AggregatorClient, collection_path, key_url_problem
from .results import Answer, CentralRelease, ComparisonResult, Estimate, ReleaseList


class ReaderError(Exception):
    """The base of all errors of the reader."""


class Unreachable(ReaderError):
    """No aggregator answered at this address."""


class KeyRefused(ReaderError):
    """The key is missing, unknown, or of another role."""


class NotFound(ReaderError):
    """There is no such collection."""


class AnswerRefused(ReaderError):
    """The query cannot be answered."""

    def __init__(self, status: int, why: str, field: str = "") -> None:
        super().__init__(why)
        self.status = status
        self.field = field


class NotConfirmed(ReaderError):
    """A release spends budget for good; `release` is what it would cost, and its error."""

    def __init__(self, release: CentralRelease) -> None:
        super().__init__(
            f"this spends {release['unit']} {release['requested']} of each period for good; of the"
            f" least, {release['remaining']} remains: confirm=True releases"
        )
        self.release = release


SECONDS = 60.0
UNAUTHORIZED, FORBIDDEN, NOT_FOUND, OK = 401, 403, 404, 200

Value = str | int | float | bool | date | Fraction | Mapping[str, Any]
Argument = Value | Iterable[Value] | None


class Reader:
    """Queries an aggregator with the key of an analyst.

    Each method takes the parameters of its endpoint: `Reader(...).estimate("theme", by="month")`. A
    parameter that is a keyword of Python ends in an underscore: `from_="2026-12-01"`.
    """

    def __init__(self, url: str, key: str, *, seconds: float = SECONDS) -> None:
        """Check the address; nothing is sent yet."""
        if why := key_url_problem(url):
            raise ValueError(f"url = {url!r}: {why}")
        self._url = url.rstrip("/")
        self._client = AggregatorClient(url, key, seconds)

    def __repr__(self) -> str:
        return f"Reader({self._url!r})"  # a notebook prints it, and keeps what it prints

    def collections(self) -> list[dict[str, Any]]:
        """Return all collections, each by its newest definition."""
        return list(self._get("/v1/collections", {})["collections"])

    def estimate(self, name: str, **params: Argument) -> Estimate:
        """Return the estimates of a collection: of all values, if no parameter selects some.

        Of open strings: of `candidates` those that are found, or those found before.
        Many values take several requests; their reports are those of one moment.
        """

        if "candidates" in params:
            return Estimate(self._search(name, params))

        def fetch(**page: int) -> dict[str, Any]:
            return self._query(name, "estimate", params | page)

        try:
            return Estimate(result_pages.all_values(fetch, params))
        except result_pages.Moved as moved:
            raise ReaderError(f"{name}: {moved}") from moved

    def compare(self, name: str, a: Argument, b: Argument, **params: Argument) -> ComparisonResult:
        """Return how one side differs from the other: segments, ranges of days, or series."""
        return ComparisonResult(self._query(name, "compare", {"a": a, "b": b, **params}))

    def releases(self, name: str) -> ReleaseList:
        """Return all releases of a central collection, and what is left of its budget."""
        return ReleaseList(self._query(name, "releases", {}))

    def release(
        self,
        name: str,
        query: str | Mapping[str, Any],
        epsilon: Fraction | str | int | None = None,
        *,
        rho: Fraction | str | None = None,
        confirm: bool = False,
        from_: date | str | None = None,
        to: date | str | None = None,
        series: str = "",
        candidates: Iterable[str] = (),
    ) -> CentralRelease:
        """Make a release of a central collection, and spend budget of each period for good.

        `epsilon` draws Laplace noise; `rho` draws Gaussian noise, where the definition has a delta.
        Without `confirm` nothing is spent: NotConfirmed states the price and what would be left.
        The same query again returns the same release, and is free: also with other `candidates`,
        the strings to look for in a release of open strings.
        """
        wanted = {
            "query": query,
            "epsilon": _exact(epsilon),
            "rho": _exact(rho),
            "from": None if from_ is None else _word(from_),
            "to": None if to is None else _word(to),
            "series": series,
            "candidates": list(candidates),
            "dry_run": not confirm,
        }
        document = self._send("POST", collection_path(name, "releases"), json=wanted)
        if not confirm:
            raise NotConfirmed(CentralRelease(document))
        return CentralRelease(document)

    def budget(self, name: str, **params: Argument) -> Answer:
        """Return a person's privacy loss, guaranteed and spent."""
        return Answer(self._query(name, "budget", params))

    def contrast(self, name: str, **params: Argument) -> Answer:
        """Return the comparison of trust models: local, shuffled and central."""
        return Answer(self._query(name, "contrast", params))

    def plan(self, **params: Argument) -> Answer:
        """Return any of devices, epsilon and error from the other two."""
        return Answer(self._get("/v1/plan", params))

    def _search(self, name: str, params: Mapping[str, Argument]) -> dict[str, Any]:
        """Send candidates as a body, since they may be a million."""
        words = {key.removesuffix("_"): spelled(param) for key, param in params.items()}
        body = {"candidates": words.pop("candidates"), "parameters": words}
        return self._send("POST", collection_path(name, "estimate"), json=body)

    def _query(self, name: str, kind: str, params: Mapping[str, Argument]) -> dict[str, Any]:
        return self._get(collection_path(name, kind), params)

    def _get(self, path: str, params: Mapping[str, Argument]) -> dict[str, Any]:
        pairs = [
            (name.removesuffix("_"), text)
            for name, argument in params.items()
            for text in spelled(argument)
        ]
        return self._send("GET", path, params=pairs)

    def _send(self, method: str, path: str, **arguments: Any) -> dict[str, Any]:
        try:
            response = self._client.request(
                method, path, headers={"Accept": "application/json"}, **arguments
            )
        except requests.RequestException as error:
            why = f"no aggregator answers at {self._url} ({type(error).__name__})"
            raise Unreachable(
                f"{why}: is the address right, and is `veilcount serve` running?"
            ) from error
        return self._read(response)

    def _read(self, response: requests.Response) -> dict[str, Any]:
        status, document = response.status_code, _document(response)
        if status == OK and document is not None:
            return document
        why = str((document or {}).get("detail", "")) or f"HTTP {status}"
        if status == UNAUTHORIZED:
            raise KeyRefused(f"{why}: give a key of `veilcount keys create --role analyst`")
        if status == FORBIDDEN:
            raise KeyRefused(why)
        if document is None:
            kind = response.headers.get("Content-Type", "nothing")
            raise Unreachable(
                f"{self._url} is no aggregator: HTTP {status}, {kind} instead of JSON"
            )
        if status == NOT_FOUND:
            raise NotFound(why)
        raise AnswerRefused(status, why, str(document.get("place", "")))


def _document(response: requests.Response) -> dict[str, Any] | None:
    try:
        document = response.json()
    except ValueError:
        return None
    return document if isinstance(document, dict) else None


def spelled(argument: Argument) -> list[str]:
    """Return the words of a parameter: none, one or several."""
    if argument is None:
        return []
    if isinstance(argument, str | int | float | date | Fraction | Mapping):
        return [_word(argument)]
    return [_word(word) for word in argument]


def _exact(number: Fraction | str | int | None) -> str | None:
    """Return a number as it is sent, exactly."""
    if number is None:
        return None
    return _word(number) if isinstance(number, Fraction) else str(number)


def _word(value: Value) -> str:
    if isinstance(value, bool | Mapping):
        return json.dumps(value)
    if isinstance(value, Fraction):
        return f"{float(value)!r}" if value.denominator > 1 else str(value.numerator)
    if isinstance(value, date):  # pandas' too, which have a time
        return f"{value:%Y-%m-%d}"
    return str(value)
