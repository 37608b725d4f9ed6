"""What is asked in these tests: two collections that run today, by the server's own clock."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from veilcount_analysis.series.series import Series
from veilcount_client import Client
from veilcount_client.testing import SeededRandomSource, SettableClock
from veilcount_shared import Collection, parse_collections
from veilcount_shared.limits import PSEUDONYM_BYTES
from veilcount_shared.report import Report

from ...client.device_fixtures import definitions_text
from ..server import Server

OPENED = {
    "question": "How was it opened?",
    "values": ["menu", "key", "mouse"],
    "unit": "event",
    "per_day": 4,
    "segments": {"arm": ["A", "B"]},
}
THEME = {
    "question": "Which theme is active?",
    "values": ["light", "dark", "system"],
    "epsilon": 2,
    "linkage": "collection",
}
DAYS_BEFORE, DAYS_AFTER = 3, 20


@dataclass(frozen=True)
class Campaign:
    """Definitions, in a file and in memory."""

    file: Path
    collections: tuple[Collection, ...]

    @classmethod
    def write(cls, folder: Path) -> Campaign:
        """Write a file of definitions that run since some days."""
        today = cls.now().date()
        dates = {"from": today - timedelta(DAYS_BEFORE), "until": today + timedelta(DAYS_AFTER)}
        text = definitions_text("acme-editor", dates, opened=OPENED, theme=THEME)
        file = folder / "collections.toml"
        file.write_text(text, encoding="utf-8")
        return cls(file, tuple(parse_collections(text, lambda _: []).values()))

    @staticmethod
    def now() -> datetime:
        return datetime.now(UTC)

    @property
    def series(self) -> list[Series]:
        return [Series(collection) for collection in self.collections]

    def person(self, randomness: SeededRandomSource) -> list[Report]:
        """Return everything that a person answers in the periods that have begun."""
        answers = (self._answers(collection, randomness) for collection in self.collections)
        return [report for reports in answers for report in reports]

    def client(self, url: str, state: Path, clock: SettableClock) -> Client:
        """Return the client that people install, for an app with several persons."""
        return Client(
            url,
            collections=self.file,
            state_dir=state,
            persons=True,
            development=True,
            jitter=0,
            clock=clock,
            strict=True,
        )

    @staticmethod
    def answer(client: Client, who: str, persons: int) -> int:
        """Have persons answer all questions of a day; return how many reports that makes."""
        for number in range(persons):
            person = client.person(f"{who} {number}")
            person.consent(True)
            person.record("theme", "dark")
            for _ in range(4):
                person.record("opened", "key", arm="A")
        assert client.flush(until="stored")
        return persons * 5

    def serve(self, store: str, *flags: str, port: int | None = None) -> Server:
        """Start a server on a store, which is made if there is none.

        Its disk may become full: a compiled module that is cut off would stay so.
        """
        arguments = ("--collections", str(self.file), "--dev", *flags)
        environ = {"PYTHONDONTWRITEBYTECODE": "1"}
        return Server(store, self.file.parent, *arguments, port=port, environ=environ)

    def _answers(self, collection: Collection, randomness: SeededRandomSource) -> list[Report]:
        linked = Series(collection).linked
        periods = range(DAYS_BEFORE + 1)
        names = {epoch: _pseudonym(randomness) for epoch in ([0] if linked else periods)}
        return [
            Report(
                fingerprint=collection.fingerprint,
                period=period,
                segment=randomness.below(collection.cells),
                pseudonym=names[0 if linked else period],
                slot=answer + (period * collection.per_day if linked else 0),
                message=collection.pack(collection.randomize("menu", randomness)),
            )
            for period in periods
            for answer in range(collection.per_day)
        ]


def _pseudonym(randomness: SeededRandomSource) -> bytes:
    return b"".join(randomness.word().to_bytes(8, "big") for _ in range(PSEUDONYM_BYTES // 8))
