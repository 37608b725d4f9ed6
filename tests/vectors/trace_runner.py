"""Runs the real client, its state on disk, through a trace of tests/vectors/trace.json.

What is replaced: the clock, the exchange of a request, the words and delays that are drawn, and the
two secrets.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

import requests
from urllib3.exceptions import MaxRetryError, NewConnectionError

from veilcount_client.delivery import backoff
from veilcount_client.delivery.issuance import DONE, _note
from veilcount_client.delivery.transport import HttpTransport, Reply
from veilcount_client.recording import answer_drawing, answer_times
from veilcount_client.testing import SettableClock
from veilcount_shared import RandomSource
from veilcount_shared.report import Batch, Report
from veilcount_shared.tokens import SlotSecret
from veilcount_shared.wire import decode_binary

from ..client.device_fixtures import Device, clock_at, quick, set_clock
from .trace_story import EPOCH, NO_REPLY, WHOLE, parse
from .wire_bodies import text

FILE = Path(__file__).parent / "trace.json"
TOLERANCE = 1.0  # seconds
#: `below(n)` of these n draws a delay
GRAINS = {answer_drawing.JITTER_GRAIN, backoff.GRAIN + 1}

Trace = Mapping[str, Any]


def traces() -> list[Trace]:
    """Return the traces of the file."""
    read: list[Trace] = json.loads(FILE.read_text())["traces"]
    return read


class DrawnUp(BaseException):
    """More was drawn than the trace has: the client, which survives every Exception, ends here."""


class ListedSource(RandomSource):
    """Gives the words and the delays of a trace, each once; orders nothing anew."""

    def __init__(self, trace: Trace) -> None:
        self.words = [int(word, 16) for word in trace["words"]]
        self.delays = list(trace["delays"])

    def word(self) -> int:
        return self._next(self.words)

    def below(self, n: int) -> int:
        if n in GRAINS:
            return min(self._next(self.delays) * (n - n % 2) // WHOLE, n - 1)
        return super().below(n)

    def shuffled(self, items: Any) -> list[Any]:
        return list(items)

    def _next(self, values: list[int]) -> int:
        if not values:
            raise DrawnUp
        return values.pop(0)


@dataclass(frozen=True)
class Attempt:
    """A request that left the device."""

    at: float
    body: bytes


class TraceTransport(HttpTransport):
    """The real transport, whose requests are answered from a trace."""

    def __init__(self, clock: SettableClock, replies: Iterator[Mapping[str, Any]]) -> None:
        super().__init__("https://stats.example.org", None, clock.now)
        self.clock, self.replies = clock, replies
        self.attempts: list[Attempt] = []

    def request(self, method: str, path: str, body: bytes, *_: object, **__: object) -> Reply:
        assert (method, path) == ("POST", "/v1/reports")
        self.attempts.append(Attempt(self.clock.now() - EPOCH, body))
        reply = next(self.replies, NO_REPLY)
        if reply.get("failure") == "not connected":
            reason = NewConnectionError(None, "refused")  # type: ignore[arg-type] # of no pool
            raise requests.ConnectionError(MaxRetryError(None, "/", reason))  # type: ignore[arg-type] # likewise
        if "failure" in reply:
            raise requests.ReadTimeout
        return Reply(reply["status"], reply["headers"], reply["content"].encode())


class NoIssuer:
    """An issuer that is never asked: a trace states which tokens came."""

    def keys(self, fingerprint: str) -> list[bytes]:
        raise NotImplementedError(fingerprint)

    def sign(self, fingerprint: str, slots: object) -> list[bytes]:
        raise NotImplementedError(fingerprint, slots)


@dataclass
class TraceRun:
    """A device on its way through a trace."""

    trace: Trace
    place: Path
    device: Device | None = None
    expected: list[Mapping[str, Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.collections = parse("\n".join(self.trace["toml"]))
        self.source = ListedSource(self.trace)
        self.clock = clock_at(EPOCH)
        replies = (event["reply"] for event in self.trace["events"] if event["event"] == "sent")
        self.transport = TraceTransport(self.clock, replies)
        self.salts: dict[bytes, bytes] = {}

    def secret(self, root: bytes, key: bytes, salt: bytes) -> bytes:
        """Return the trace's next secret where the state has made another salt."""
        secrets = self.trace["secrets"]
        if salt not in self.salts and len(self.salts) == len(secrets):
            raise DrawnUp
        return self.salts.setdefault(salt, bytes.fromhex(secrets[len(self.salts) % len(secrets)]))

    @contextmanager
    def replaced(self) -> Iterator[None]:
        """Have the state take the two secrets of the trace."""
        answer_times.drawn_instants.cache_clear()
        with ExitStack() as stack:
            root = bytes.fromhex(self.trace["root"])
            state = "veilcount_client.state.sqlite"
            stack.enter_context(patch(f"{state}.person_secret", self.secret))
            stack.enter_context(patch(f"{state}.person_root", lambda *_: root))
            stack.callback(self.end)
            yield

    def run(self) -> None:
        for event in self.trace["events"]:
            if event["event"] == "sent":
                self.expected.append(event)
                continue
            if self.device is None:
                set_clock(self.clock, EPOCH + event["at"])
            else:
                self.device.run_until(EPOCH + event["at"])
            self.compare()
            getattr(self, f"do_{event['event']}")(event)
        assert not self.source.words, f"{len(self.source.words)} words were not drawn"
        assert not self.source.delays, f"{len(self.source.delays)} delays were not drawn"

    def compare(self) -> None:
        """Check what has left so far against what should have."""
        attempts = self.transport.attempts
        for attempt, event in zip(attempts, self.expected, strict=False):
            compare(attempt, event)
        sent = [attempt.at for attempt in attempts[len(self.expected) :]]
        assert not sent, f"sent, but not to be sent: {sent}"
        missing = [event["latest"] for event in self.expected[len(attempts) :]]
        assert not missing, f"not sent: {missing}"

    def end(self) -> None:
        """Close the state's files, whatever the client would still do."""
        if self.device is not None and self.device.runs:
            self.device.crash()
            self.device.close_abandoned()

    # -- events --------------------------------------------------------------------------------

    def do_start(self, event: Mapping[str, Any]) -> None:
        if "toml" in event:
            self.collections = parse("\n".join(event["toml"]))
        if self.device is None:
            self.device = Device(
                self.place,
                self.collections,
                self.clock,
                self.transport,
                randomness=self.source,
                consent=None,
                trust_curator=True,
                issuer=NoIssuer(),
                account="account",
            )
        else:
            self.device.start(self.collections)

    def do_stop(self, _: object) -> None:
        self.one.stop()

    def do_consent(self, event: Mapping[str, Any]) -> None:
        self.one.client.consent(event["granted"])
        self.one.work()

    def do_record(self, event: Mapping[str, Any]) -> None:
        self.one.record(event["collection"], value=event["value"])

    def do_forget(self, _: object) -> None:
        self.one.client.forget()
        self.one.work()

    def do_copied(self, _: object) -> None:
        self.one.stop()
        copy = self.place.with_name(f"{self.place.name}-copy")
        shutil.copytree(self.place, copy)
        self.place = self.one.place = copy

    def do_clock(self, event: Mapping[str, Any]) -> None:
        set_clock(self.clock, EPOCH + event["to"])

    def do_tokens(self, event: Mapping[str, Any]) -> None:
        fingerprint, person = self.collections[event["collection"]].fingerprint, self.one.person
        tokens = {
            SlotSecret(person.secret, fingerprint, int(period), 0).pseudonym: bytes.fromhex(token)
            for period, token in event["tokens"].items()
        }
        self.one.state.keep_tokens(person, tokens)
        self.one.state.keep(_note(person, fingerprint), DONE)

    def do_instant(self, event: Mapping[str, Any]) -> None:
        drawn = self.one.instant(event["collection"], event["period"])
        assert drawn == EPOCH + event["at"], "the drawn instant"

    def do_end(self, _: object) -> None:
        """Do nothing more."""

    @property
    def one(self) -> Device:
        assert self.device is not None
        return self.device


def compare(attempt: Attempt, event: Mapping[str, Any]) -> None:
    """Check one request against what a trace says of it."""
    body = bytes.fromhex(text(event["body"]))
    assert len(attempt.body) == len(body)
    assert content(attempt.body) == content(body)
    assert event["earliest"] <= attempt.at <= event["latest"] + TOLERANCE
    assert abs(attempt.at - event.get("at", attempt.at)) <= TOLERANCE


def content(body: bytes) -> tuple[Batch, list[Report]]:
    """Return what a body holds, whatever the order of its reports."""
    batch = decode_binary(body)
    order = sorted(batch.reports, key=lambda report: (report.fingerprint, report.slot))
    return Batch((), batch.losses, batch.test, batch.padding) if batch.losses else batch, order


def check_trace(trace: Trace) -> None:
    """Raise AssertionError unless the client does what the trace says."""
    with tempfile.TemporaryDirectory(dir=quick()) as folder:
        run = TraceRun(trace, Path(folder) / "state")
        with run.replaced():
            try:
                run.run()
            except DrawnUp:
                raise AssertionError("more was drawn than there is to draw") from None
