"""The transport: one request, one of three outcomes; the uploader decides what follows.

Reports travel over TLS, or within one machine. No connection outlives its request, no cookie is
kept, no redirect is followed, no header names the machine, and a reply is read only as far as a
reply can be long.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Protocol
from urllib.parse import urlsplit

from veilcount_shared.errors import WireError
from veilcount_shared.problem_details import PROBLEM_TYPE, UNKNOWN_VERSION
from veilcount_shared.wire import BINARY_TYPE, decode_verdicts

from ..clock import instant
from ..errors import NotUsable
from . import backoff
from .late_http import http

if TYPE_CHECKING:
    import requests

    from .deadline import Deadline

TIMEOUT = (5.0, 10.0)  # to connect, to hear the next byte
MAX_REPLY = 64 << 10
MAX_SECONDS = 30.0  # for the whole of an exchange, whatever each byte takes
CODINGS = frozenset({"", "identity", "gzip"})  # two layers of one turn 16 bytes into megabytes
OK = 200


@dataclass(frozen=True, slots=True)
class Delivered:
    """The aggregator replied with a verdict a report, each a Verdict or `UNKNOWN_VERDICT`."""

    verdicts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Later:
    """Not now: send the same bytes again, after at least so many seconds."""

    why: str
    seconds: float = 0.0
    seen: bool = True  # whether the other end may have read the body, and so knows of the attempt


@dataclass(frozen=True, slots=True)
class Rejected:
    """Rejected for good: the aggregator does not accept these bytes as a batch."""

    why: str


Outcome = Delivered | Later | Rejected


class Transport(Protocol):
    """Sends bodies to an aggregator."""

    def send(self, body: bytes, reports: int) -> Outcome:
        """Post a batch of so many reports."""


class LeftToAnother:
    """The transport of a process that sends nothing: another one has the same state, and does."""

    def send(self, body: bytes, reports: int) -> Later:  # noqa: ARG002 - as the protocol has it
        """Leave reports where they are."""
        return Later("left to another process", seen=False)


class HttpTransport:
    """Posts to an aggregator by HTTP."""

    def __init__(
        self,
        url: str,
        key: str | None,
        now: Callable[[], float],
        announced: Callable[[str], object] = lambda _: None,
    ) -> None:
        """Remember the URL, and the app's key; `announced` is called with the end of a server."""
        self._url = url.rstrip("/")
        self._key = key
        self._now = now
        self._announced = announced

    def send(self, body: bytes, reports: int) -> Outcome:
        """Post a batch of so many reports."""
        try:
            reply = self.request("POST", "/v1/reports", body)
            if end := announced_end(reply.headers):
                self._announced(end)
            return self._read(reply, reports)
        except Exception as error:  # noqa: BLE001 - whatever went wrong on the way, it is no verdict
            return Later(type(error).__name__, seen=not http().is_unsent(error))

    def request(
        self,
        method: str,
        path: str,
        body: bytes,
        content_type: str = BINARY_TYPE,
        most: int = MAX_REPLY,
    ) -> Reply:
        """Return the bounded reply to one request on a connection of its own."""
        with self._deadline() as deadline:
            return self._exchange(
                deadline, method, path, body, content_type=content_type, most=most
            )

    def _deadline(self) -> Deadline:
        deadline: Deadline = http().Deadline(MAX_SECONDS)
        return deadline

    def _exchange(
        self,
        deadline: Deadline,
        method: str,
        path: str,
        body: bytes,
        *,
        content_type: str,
        most: int,
    ) -> Reply:
        with (
            http().session(deadline) as session,
            session.request(
                method,
                self._url + path,
                data=body,
                headers={
                    "Content-Type": content_type,
                    "User-Agent": "veilcount",
                    "Accept-Encoding": "identity",
                    "Connection": "close",
                },
                auth=self._authorize,  # always, so that no .netrc adds a name
                timeout=TIMEOUT,
                allow_redirects=False,
                stream=True,
            ) as reply,
        ):
            return Reply(reply.status_code, reply.headers, _bounded(reply, most))

    def _authorize(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        if self._key:
            request.headers["Authorization"] = f"Bearer {self._key}"
        return request

    def _read(self, reply: Reply, reports: int) -> Outcome:
        if reply.status == OK:
            return _verdicts(reply.content, reports)
        problem = reply.headers.get("Content-Type", "").startswith(PROBLEM_TYPE)
        if problem and reply.status in {400, 413, 422} and not is_unknown_version(reply):
            return Rejected(f"{reply.status}")
        # An app may be updated before its server. Any other answer may be a proxy's, a portal's or
        # an operator's mistake: the reports wait.
        why = UNKNOWN_VERSION.name if is_unknown_version(reply) else f"{reply.status}"
        return Later(why, backoff.retry_after(reply.headers.get("Retry-After"), self._now()))


@dataclass(frozen=True, slots=True)
class Reply:
    """A reply, read as far as one can be long."""

    status: int
    headers: Mapping[str, str]
    content: bytes


def problem_document(reply: Reply) -> dict[str, object]:
    """Return the problem of a reply [RFC 9457], empty if it has none."""
    if not reply.headers.get("Content-Type", "").startswith(PROBLEM_TYPE):
        return {}
    try:
        problem = json.loads(reply.content)
    except (ValueError, RecursionError):
        return {}
    return problem if isinstance(problem, dict) else {}


def announced_end(headers: Mapping[str, str]) -> str:
    """Return the days of a deprecation [RFC 9745] and sunset [RFC 8594], if there are any."""
    deprecation, sunset = headers.get("Deprecation"), headers.get("Sunset")
    try:
        since = f"deprecated from {instant(int(deprecation[1:])):%Y-%m-%d}" if deprecation else ""
        end = f"it ends on {parsedate_to_datetime(sunset):%Y-%m-%d}" if sunset else ""
    except (ValueError, OverflowError, OSError):
        return ""
    return ", ".join(filter(None, (since, end)))


def is_unknown_version(reply: Reply) -> bool:
    """Whether the aggregator does not know the version of the protocol."""
    return problem_document(reply).get("type") == UNKNOWN_VERSION.uri


def _bounded(reply: requests.Response, most: int) -> bytes:
    """Read a reply as far as one can be long.

    No compression was requested. One layer, by a proxy that compresses everything, is undone; of
    more, some releases of urllib3 unpack all that a piece becomes.
    """
    content = b""
    if reply.headers.get("Content-Encoding", "").strip().lower() not in CODINGS:
        return content
    for piece in reply.iter_content(16):  # of one piece, too, a compressed reply may make megabytes
        content += piece
        if len(content) > most:
            break
    return content


def _verdicts(content: bytes, reports: int) -> Outcome:
    if len(content) > MAX_REPLY:
        return Later("the reply is too long")
    try:
        return Delivered(decode_verdicts(content, reports))
    except WireError:
        return Later("the reply holds no verdicts")


def without_password(url: str) -> str:
    """Return a URL without its user and password, as it may be shown."""
    scheme, separator, authority_and_path = url.rpartition("://")
    return scheme + separator + authority_and_path.rpartition("@")[2]


def malformed(url: str, name: str = "url") -> str:
    """Return why no request can go to a URL, and the fix; empty without a problem."""
    shown = without_password(url)
    try:
        parts = urlsplit(url)
        host = parts.hostname
    except ValueError as error:
        return f"{name} = {shown!r}: {error}: give https:// and a host name"
    if parts.scheme in {"http", "https"} and host:
        return ""
    bare = shown.rpartition("://")[2].strip("/")
    return f"{name} = {shown!r} does not begin with http:// or https://: give 'https://{bare}'"


def in_clear(url: str, key: str | None, what: str = "pseudonyms travel") -> str:
    """Return what would travel unencrypted to a URL, and the fix; empty without a problem."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
    except ValueError:
        return ""  # no address at all: nothing is sent there
    if parts.scheme != "http" or not host or is_on_this_machine(host):
        return ""
    what = "the key would travel" if key else what
    fix = "give https://, or the loopback address of a proxy here that ends TLS"
    return f"over http:// {what} in clear: {fix}"


def is_on_this_machine(host: str) -> bool:
    """Whether a host is the loopback address."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def read_relay_keys(path: str | None) -> bytes:
    """Return the content of the file of the gateway's public keys, which comes with the app."""
    if path is None:
        raise NotUsable(
            "relay_keys: give the file of `veilcount relay-keys create --out`; a key that was"
            " fetched could be one person's alone"
        )
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise NotUsable(f"relay_keys: {error.strerror}: check the path") from error
