"""Test doubles: a clock to set, a seeded source of randomness, transports without a network."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime, time, timedelta
from io import BytesIO
from random import Random
from typing import Any, ClassVar
from wsgiref.types import WSGIApplication
from wsgiref.util import setup_testing_defaults

from veilcount_shared import Collection
from veilcount_shared.randomness import WORD_BITS, RandomSource
from veilcount_shared.report import Batch, Report
from veilcount_shared.verdict import UNKNOWN_VERDICT, Verdict
from veilcount_shared.wire import BINARY_TYPE, decode_binary, decode_json

from ..clock import SystemClock
from ..delivery.replies import HELD
from ..delivery.transport import Delivered, HttpTransport, Outcome, Reply, Transport

UNKNOWN_EVERY = 100  # reports: a client that keeps none of them loses one


class SettableClock:
    """Shows the instant it was set to, and never moves on its own."""

    def __init__(self, start: datetime | None = None) -> None:
        """Stand at an instant, or at one that does not matter yet."""
        self.is_set = start is not None
        self._now = (start or datetime(2000, 1, 1, tzinfo=UTC)).timestamp()

    def now(self) -> float:
        """Return the instant it shows, in seconds since 1970."""
        return self._now

    def set(self, instant: datetime) -> None:
        """Show another instant; an earlier one too, as a device's clock may."""
        if instant.tzinfo is None:
            raise ValueError("an instant needs its time zone: datetime(..., tzinfo=UTC)")
        self.is_set = True
        self._now = instant.timestamp()

    def advance(self, **by: float) -> None:
        """Move on: advance(days=7), advance(hours=1, minutes=30)."""
        self._now += timedelta(**by).total_seconds()


def first_common_noon(collections: Iterable[Collection]) -> datetime:
    """Return noon of the first day on which as many of the campaigns as can be are running."""
    campaigns = [(collection.start, collection.until) for collection in collections]
    running = {day: sum(a <= day < b for a, b in campaigns) for day, _ in campaigns}
    day = min(running, key=lambda day: (-running[day], day))
    return datetime.combine(day, time(12), UTC)


class SeededRandomSource(RandomSource):
    """Draws the same stream for the same seed. Predictable, hence without any privacy."""

    __slots__ = ("_random",)

    predictable: ClassVar[bool] = True

    def __init__(self, seed: int) -> None:
        """Begin the stream of this seed."""
        self._random = Random(seed)  # noqa: S311 - for tests, which must not flake

    def word(self) -> int:
        """Return the stream's next 64 bits."""
        return self._random.getrandbits(WORD_BITS)


class RecordingTransport:
    """Remembers every batch, and counts each of its reports.

    Every hundredth is given the verdict of a later release first, and so comes again.

    With `onward` it also hands everything on; with `outcome` it returns that instead:
    `transport.outcome = Later("offline")`.
    """

    def __init__(self, onward: Transport | None = None, batches: list[Batch] | None = None) -> None:
        """Remember in a list of its own, or in one that several share."""
        self.batches: list[Batch] = [] if batches is None else batches
        self.outcome: Outcome | None = None
        self._onward = onward
        self._verdicts = 0

    @property
    def reports(self) -> list[Report]:
        """Return every report that was sent and not rejected, once, in order."""
        return list(dict.fromkeys(report for batch in self.batches for report in batch.reports))

    def send(self, body: bytes, reports: int) -> Outcome:
        """Take a batch; one that a test wrote by hand may be JSON."""
        if self.outcome is not None:
            return self.outcome
        decode = decode_json if body.lstrip().startswith(b"{") else decode_binary
        self.batches.append(decode(body))
        if self._onward is not None:
            return self._onward.send(body, reports)
        return Delivered(tuple(self._verdict() for _ in range(reports)))

    def _verdict(self) -> str:
        self._verdicts += 1
        return Verdict.COUNTED if self._verdicts % UNKNOWN_EVERY else UNKNOWN_VERDICT


class RecordingShuffler:
    """Remembers every envelope, and takes it; with `outcome` it returns that instead."""

    def __init__(self) -> None:
        """Remember nothing yet."""
        self.envelopes: list[bytes] = []
        self.outcome: Outcome | None = None

    def send_envelope(self, envelope: bytes) -> Outcome:
        """Take an envelope, which only the aggregator's key opens."""
        self.envelopes.append(envelope)
        return self.outcome or Delivered((HELD,))


class WsgiTransport(HttpTransport):
    """The real transport, its requests answered by a WSGI app in the same process."""

    def __init__(
        self,
        app: WSGIApplication,
        key: str | None = None,
        now: Callable[[], float] = SystemClock.now,
    ) -> None:
        """Remember the app, and the key to send."""
        super().__init__("", key, now)
        self._app = app

    def request(
        self,
        method: str,
        path: str,
        body: bytes,
        content_type: str = "",
        most: int = 0,  # noqa: ARG002 - no reply is long
    ) -> Reply:
        """Return the app's reply."""
        head: list[Any] = []

        def start(status: str, headers: Iterable[tuple[str, str]], *_: object) -> Any:
            head[:] = [int(status[:3]), dict(headers)]
            return _no_writing

        environ: dict[str, Any] = {
            "REQUEST_METHOD": method,
            "PATH_INFO": path,
            "CONTENT_TYPE": content_type or BINARY_TYPE,
            "CONTENT_LENGTH": str(len(body)),
            "wsgi.input": BytesIO(body),
        }
        if self._key:
            environ["HTTP_AUTHORIZATION"] = f"Bearer {self._key}"
        setup_testing_defaults(environ)
        pieces = self._app(environ, start)
        try:
            content = b"".join(pieces)
        finally:
            getattr(pieces, "close", lambda: None)()
        status, headers = head
        return Reply(status, headers, content)


def _no_writing(_: bytes) -> None:
    raise NotImplementedError("return pieces: write() is a remainder of early WSGI")
