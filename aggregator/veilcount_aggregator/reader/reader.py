"""The reader: one address, one key, a method a door."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import date
from fractions import Fraction
from typing import Any

import requests

from ..http_client import AggregatorClient, collection_path, key_url_problem
from .errors import AnswerRefused, KeyRefused, NotFound, Unreachable
from .results import Answer, ComparisonResult, Estimate

SECONDS = 60.0
UNAUTHORIZED, FORBIDDEN, NOT_FOUND, OK = 401, 403, 404, 200

Word = str | int | float | bool | date | Fraction | Mapping[str, Any]
Words = Word | Iterable[Word] | None


class Reader:
    """Asks an aggregator, with the key of an analyst.

    Each method takes the parameters of its door: `Reader(...).estimate("theme", by="month")`. Where
    Python has a word of its own there is an underscore behind it: `from_="2026-12-01"`.
    """

    def __init__(self, url: str, key: str, *, seconds: float = SECONDS) -> None:
        """Remember where and with what; nothing is sent yet."""
        if why := key_url_problem(url):
            raise ValueError(f"url = {url!r}: {why}")
        self._url = url.rstrip("/")
        self._client = AggregatorClient(url, key, seconds)

    def __repr__(self) -> str:
        return f"Reader({self._url!r})"  # a notebook prints it, and keeps what it prints

    def collections(self) -> list[dict[str, Any]]:
        """Return all collections, each by its newest definition."""
        return list(self._ask("/v1/collections", {})["collections"])

    def estimate(self, name: str, **asked: Words) -> Estimate:
        """Return the answers of a collection, debiased."""
        return Estimate(self._of(name, "estimate", asked))

    def compare(self, name: str, a: Words, b: Words, **asked: Words) -> ComparisonResult:
        """Return how one side differs from the other: segments, ranges of days, or series."""
        return ComparisonResult(self._of(name, "compare", {"a": a, "b": b, **asked}))

    def budget(self, name: str, **asked: Words) -> Answer:
        """Return what a person reveals, promised and counted."""
        return Answer(self._of(name, "budget", asked))

    def contrast(self, name: str, **asked: Words) -> Answer:
        """Return the same question locally, behind a shuffler, and by a trusted curator."""
        return Answer(self._of(name, "contrast", asked))

    def plan(self, **asked: Words) -> Answer:
        """Return any of devices, epsilon and error from the other two."""
        return Answer(self._ask("/v1/plan", asked))

    def _of(self, name: str, what: str, asked: Mapping[str, Words]) -> dict[str, Any]:
        return self._ask(collection_path(name, what), asked)

    def _ask(self, path: str, asked: Mapping[str, Words]) -> dict[str, Any]:
        parameters = [
            (name.removesuffix("_"), word)
            for name, words in asked.items()
            for word in spelled(words)
        ]
        try:
            reply = self._client.request(
                "GET", path, params=parameters, headers={"Accept": "application/json"}
            )
        except requests.RequestException as error:
            why = f"no aggregator answers at {self._url} ({type(error).__name__})"
            raise Unreachable(
                f"{why}: is the address right, and is `veilcount serve` running?"
            ) from error
        return self._read(reply)

    def _read(self, reply: requests.Response) -> dict[str, Any]:
        said = _document(reply)
        if reply.status_code == OK and said is not None:
            return said
        why = str((said or {}).get("detail", "")) or f"HTTP {reply.status_code}"
        if reply.status_code == UNAUTHORIZED:
            raise KeyRefused(f"{why}: give a key of `veilcount keys create --role analyst`")
        if reply.status_code == FORBIDDEN:
            raise KeyRefused(why)
        if reply.status_code == NOT_FOUND and said is not None:
            raise NotFound(why)
        if said is None:
            kind = reply.headers.get("Content-Type", "nothing")
            raise Unreachable(
                f"{self._url} is no aggregator: HTTP {reply.status_code}, {kind} instead of JSON"
            )
        raise AnswerRefused(reply.status_code, why, str(said.get("place", "")))


def _document(reply: requests.Response) -> dict[str, Any] | None:
    try:
        said = reply.json()
    except ValueError:
        return None
    return said if isinstance(said, dict) else None


def spelled(words: Words) -> list[str]:
    """Return a parameter as it is sent: once, several times, or not at all."""
    if words is None:
        return []
    if isinstance(words, str | int | float | date | Fraction | Mapping):
        return [_word(words)]
    return [_word(each) for each in words]


def _word(word: Word) -> str:
    if isinstance(word, bool | Mapping):
        return json.dumps(word)
    if isinstance(word, Fraction):
        return f"{float(word)!r}" if word.denominator > 1 else str(word.numerator)
    return str(word)
