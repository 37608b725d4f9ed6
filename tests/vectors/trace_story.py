"""How a trace is written: what happens to a device, and what it stores and sends, in their order.

Nothing here runs a client. A report is put together from the schedule, the mechanism and the
encoding, which other vectors pin, and the times from the windows that the specification states.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from random import Random
from typing import Any

from veilcount_shared import Collection, RandomSource, parse_collections, schedule
from veilcount_shared.mechanisms import TrendState
from veilcount_shared.problem_details import PROBLEM_TYPE, TYPE_PREFIX
from veilcount_shared.report import Batch, Losses, Report
from veilcount_shared.wire import encode_binary

from ..client.device_fixtures import DAY, HOUR, definitions_text
from .wire_bodies import runs_of

START = datetime(2026, 12, 1, tzinfo=UTC)
EPOCH = START.timestamp()
WHOLE = 1_000_000  # a delay's share of its longest, in millionths
BODY = 1024  # bytes of a body of a few reports
SEEN = (4 * HOUR, 2 * DAY, 7 * DAY)  # the longest back-off by attempts, if somebody may have read
TRUE_VALUE = 300.0

Event = dict[str, Any]
Reply = dict[str, Any]
Tables = Mapping[str, Mapping[str, object]]
NO_REPLY: Reply = {"failure": "no reply"}
NOT_CONNECTED: Reply = {"failure": "not connected"}


def day(number: float, hours: float = 0, seconds: float = 0) -> float:
    """Return an instant in seconds after the campaign's start."""
    return number * DAY + hours * HOUR + seconds


def verdicts(*words: str, **members: object) -> Reply:
    return http(200, {"verdicts": list(words), **members})


def problem(status: int, name: str) -> Reply:
    document = {"type": TYPE_PREFIX + name, "title": "?", "status": status}
    return http(status, document, **{"Content-Type": PROBLEM_TYPE})


def http(status: int, content: object = None, /, **headers: str) -> Reply:
    text = content if isinstance(content, str) else json.dumps(content)
    return {"status": status, "headers": headers, "content": "" if content is None else text}


class ListingSource(RandomSource):
    """Draws from a seed, and lists the words that it gave."""

    __slots__ = ("_random", "words")

    def __init__(self, seed: str) -> None:
        self._random = Random(seed)
        self.words: list[int] = []

    def word(self) -> int:
        self.words.append(self._random.getrandbits(64))
        return self.words[-1]


@dataclass(frozen=True)
class Waiting:
    """A stored report, the window in which it may be sent, and when it is with the drawn delay."""

    report: Report
    earliest: float
    latest: float
    at: float


class Story:
    """One trace, event by event. Times only grow, but for a clock that is set."""

    def __init__(self, name: str, why: str, tables: Tables, *, seed: str = "") -> None:
        self.name, self.why = name, why
        self.toml = text_of(tables)
        self.collections = parse(self.toml)
        self.events: list[Event] = []
        self.delays: list[int] = []
        self.source = ListingSource(name)
        self.secrets = [_bytes(name, seed, "secret")]
        self.root = _bytes(name, seed, "root")
        self.since: dict[str, float] = {}  # by fingerprint: when the consent first covered it
        self.now = 0.0

    @property
    def secret(self) -> bytes:
        return self.secrets[-1]

    # -- what happens --------------------------------------------------------------------------

    def at(self, *instant: float) -> Story:
        """Let time pass until an instant."""
        self.now = day(*instant) if len(instant) > 1 else instant[0]
        return self

    def _add(self, event: str, **fields: object) -> None:
        self.events.append({"at": self.now, "event": event, **fields})

    def start(self, tables: Tables | None = None) -> None:
        """Start a process of the app, perhaps of another version."""
        toml = {} if tables is None else {"toml": text_of(tables)}
        if tables is not None:
            self.collections = parse(text_of(tables))
        self._add("start", **toml)

    def begin(self, *instant: float) -> None:
        """Start the first process, and consent to everything."""
        self.at(*instant).start()
        self.consent()

    def stop(self) -> None:
        self._add("stop")

    def consent(self, *, granted: bool = True) -> None:
        self._add("consent", granted=granted)
        for collection in self.collections.values() if granted else ():
            self.since.setdefault(collection.fingerprint, self.now)

    def record(self, value: object = True, name: str = "it") -> None:  # noqa: FBT002 - a person's value
        self._add("record", collection=name, value=value)

    def forget(self) -> None:
        """Have the person forget all: another secret from here on."""
        self._add("forget")
        self.secrets.append(_bytes(self.name, str(len(self.secrets)), "secret"))

    def copied(self) -> None:
        """Have the next process start on a copy of the state."""
        self._add("copied")
        self.secrets.append(_bytes(self.name, str(len(self.secrets)), "secret"))

    def clock(self, *instant: float) -> None:
        """Set the device's clock."""
        self._add("clock", to=day(*instant))
        self.at(*instant)

    def tokens(self, tokens: dict[int, bytes], name: str = "it") -> None:
        """Have the issuer's tokens of some periods arrive."""
        listed = {str(period): token.hex() for period, token in tokens.items()}
        self._add("tokens", collection=name, tokens=listed)

    def frozen(self, name: str = "it", period: int = 0) -> float:
        """State the drawn instant of a period, and let time pass until it."""
        self.now = self.instant(name, period)
        self._add("instant", collection=name, period=period)
        return self.now

    def end(self, days: float) -> Story:
        self.at(days, 0)._add("end")
        return self

    def instant(self, name: str = "it", period: int = 0, *, at_first: bool = False) -> float:
        """Return the drawn instant of a period's first answer, by the definitions of now."""
        collection = (parse(self.toml) if at_first else self.collections)[name]
        begin = schedule.period_start(collection, period).timestamp() - EPOCH
        end = schedule.period_end(collection, period).timestamp() - EPOCH
        since = min(max(self.since.get(collection.fingerprint, begin), begin), end)
        drawn = schedule.draw_instant(self.secret, collection, period).timestamp() - EPOCH
        share = (end - since) / (end - begin)
        return math.ceil((since + (drawn - begin) * share) / 60) * 60.0

    def slot(self, name: str, period: int, answer: int) -> int:
        return schedule.draw_slot(self.secret, self.collections[name], period, answer)

    # -- what is stored ------------------------------------------------------------------------

    def store(
        self,
        value: object = True,  # noqa: FBT002 - likewise
        name: str = "it",
        *,
        period: int = 0,
        answer: int = 0,
        share: float = 0.25,
        least: float = 0,
        most: float = HOUR,
        absent: bool = False,
        message: int | None = None,
    ) -> Waiting:
        """Store the report of an answer; `message`: of a kind that needs more than a value."""
        collection = self.collections[name]
        if absent:
            message = collection.randomize_absent(self.source)
        elif message is None:
            message = collection.message(value, self.source)
        report = Report(
            collection.fingerprint,
            period,
            0,
            schedule.derive_pseudonym(self.secret, collection, period, self.source, answer),
            self.slot(name, period, answer),
            collection.pack(message),
        )
        return self._delayed(report, least, most, share)

    def trend(self, name: str = "it") -> tuple[TrendState, Collection]:
        collection = self.collections[name]
        return schedule.draw_trend(self.secret, collection), collection

    def _delayed(self, report: Report, least: float, most: float, share: float) -> Waiting:
        self.delays.append(round(share * WHOLE))
        earliest, latest = self.now + least, self.now + most
        return Waiting(report, earliest, latest, earliest + share * (latest - earliest))

    def spread(self, waiting: Waiting, share: float) -> Waiting:
        """Give a report that was due while nothing could leave another time."""
        return self._delayed(waiting.report, 0, HOUR, share)

    # -- what is sent --------------------------------------------------------------------------

    def sent(self, *reports: Waiting, reply: Reply | None = None) -> Story:
        """Send reports of one row in one body; by default all are counted."""
        last = reports[-1]
        self.now = last.at
        body = encode(Batch(tuple(waiting.report for waiting in reports)))
        self._sent(body, last.earliest, last.latest, last.at, reply or _counted(len(reports)))
        return self

    def sent_losses(self, losses: Losses, earliest: float, latest: float, reply: Reply) -> None:
        """Send a loss report, at any time of a window."""
        self.now = latest
        self._sent(encode(Batch(losses=losses)), earliest, latest, None, reply)

    def _sent(
        self, body: bytes, earliest: float, latest: float, at: float | None, reply: Reply
    ) -> None:
        window = {"earliest": earliest, "latest": latest}
        self.events.append({"at": at, "event": "sent", **window, "body": body, "reply": reply})

    def back_off(
        self, *reports: Waiting, share: float, seen: int = 0, most: float = 0, least: float = 0
    ) -> list[Waiting]:
        """Give a row that did not get through another time, the same for all its reports.

        `seen`: after so many attempts that somebody may have read; else `most` seconds.
        """
        longest = SEEN[min(seen, len(SEEN)) - 1] if seen else most
        first = self._delayed(reports[0].report, least, least + longest, share)
        return [replace(first, report=waiting.report) for waiting in reports]

    # -- the file ------------------------------------------------------------------------------

    def vector(self) -> Event:
        return {
            "name": self.name,
            "why": self.why,
            "toml": self.toml.splitlines(),
            "root": self.root.hex(),
            "secrets": [secret.hex() for secret in self.secrets],
            "words": [f"{word:016x}" for word in self.source.words],
            "delays": self.delays,
            "events": [_plain(event) for event in self.events],
        }


def text_of(tables: Tables) -> str:
    return definitions_text("acme", **tables)


def parse(toml: str) -> dict[str, Collection]:
    return parse_collections(toml, lambda _: [])


def encode(batch: Batch) -> bytes:
    """Return a batch at the shortest length of bodies."""
    bare = len(encode_binary(batch))
    return encode_binary(replace(batch, padding=BODY - bare))


def _counted(reports: int) -> Reply:
    return verdicts(*["counted"] * reports)


def _plain(event: Event) -> Event:
    fields = {name: _short(value) for name, value in event.items() if value is not None}
    if "body" in fields:
        fields["body"] = runs_of(event["body"])
    if "toml" in fields:
        fields["toml"] = event["toml"].splitlines()
    return fields


def _short(value: object) -> object:
    """Return a number of seconds to the millisecond."""
    if not isinstance(value, float):
        return value
    return int(value) if value == int(value) else round(value, 3)


def _bytes(*what: str) -> bytes:
    return hashlib.sha256("\0".join(what).encode()).digest()


def seed_with(build: Callable[[str], Story], fits: Callable[[Story], bool]) -> Story:
    """Return a story whose secret draws fit: the first such seed."""
    return next(story for story in map(build, map(str, range(1000))) if fits(story))


def middle_of_day(name: str = "it", periods: Sequence[int] = (1,)) -> Callable[[Story], bool]:
    """Return whether the instants of some daily periods lie between eight and twenty o'clock."""
    return lambda story: all(
        8 * HOUR <= story.instant(name, period, at_first=True) - day(period) <= 20 * HOUR
        for period in periods
    )
