"""Checks of TLS: the certificate, HSTS, and what the same host serves without TLS."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import urlsplit

import requests
from requests.utils import DEFAULT_CA_BUNDLE_PATH

from ..http_client import key_url_problem
from .finding import Check, CheckResult, graded, ok, warn, wrong
from .http_probe import PROXY, SECONDS, ServerProbe

SOON = timedelta(days=14)
PORT = 443


def _private(probe: ServerProbe) -> Iterator[CheckResult]:
    if probe.secure:
        yield ok("TLS with a trusted certificate")
    elif key_url_problem(probe.url):
        yield wrong(
            "http: anyone on the network path can read pseudonyms and forge responses",
            "terminate TLS in a reverse proxy, and give devices an https:// address",
        )
    else:
        yield ok("http, on this machine only")


def _strict(probe: ServerProbe) -> Iterator[CheckResult]:
    if "Strict-Transport-Security" in probe.request("GET", "/healthz").headers:
        yield ok("HSTS is enabled")
    else:
        fix = f"{PROXY}: add Strict-Transport-Security: max-age=31536000"
        yield warn("no HSTS: a browser's first visit may use http", fix)


def _certificate(probe: ServerProbe) -> Iterator[CheckResult]:
    """Check how long the certificate is valid."""
    try:
        ends = _ends(probe.url)
    except OSError as error:  # an outgoing proxy, for example
        message = f"the certificate's expiry could not be read: {error}"
        yield warn(message, "check with openssl s_client")
        return
    fix = "renew it: devices do not send to a server with an invalid certificate"
    soon = ends - probe.clock() < SOON
    yield graded(f"valid until {ends:%Y-%m-%d}", fix, is_wrong=False, is_doubtful=soon)


def _ends(url: str) -> datetime:
    """Return the certificate's expiry, from a handshake with the trust store of requests."""
    parts = urlsplit(url)
    with (
        socket.create_connection((parts.hostname, parts.port or PORT), SECONDS) as plain_socket,
        _trusting(url).wrap_socket(plain_socket, server_hostname=parts.hostname) as wrapped,
    ):
        certificate = wrapped.getpeercert() or {}
    return datetime.fromtimestamp(ssl.cert_time_to_seconds(str(certificate["notAfter"])), UTC)


def _trusting(url: str) -> ssl.SSLContext:
    with requests.Session() as session:
        trusted = session.merge_environment_settings(url, {}, False, None, None)["verify"]
    bundle = Path(trusted if isinstance(trusted, str) else DEFAULT_CA_BUNDLE_PATH)
    if bundle.is_dir():
        return ssl.create_default_context(capath=bundle)
    return ssl.create_default_context(cafile=bundle)


def _unencrypted(probe: ServerProbe) -> Iterator[CheckResult]:
    """Check the same host over http, which should not respond, or redirect."""
    parts = urlsplit(probe.url)
    if parts.port is not None:
        yield ok("not checked: the address has a port")
        return
    yield from http_redirect(f"http://{parts.hostname}")


def http_redirect(url: str) -> Iterator[CheckResult]:
    """Yield a problem if a host serves anything but a redirect without TLS."""
    try:
        reply = requests.get(f"{url}/healthz", timeout=SECONDS, allow_redirects=False)
    except requests.RequestException:
        yield ok(f"no response at {url}")
        return
    if reply.headers.get("Location", "").startswith("https://"):
        yield ok(f"{url} redirects to https")
    else:
        fix = f"{PROXY}: only redirect to https there"
        yield wrong(f"{url} responds unencrypted, with HTTP {reply.status_code}", fix)


TRANSPORT: dict[str, Check[ServerProbe]] = {"transport": _private}
TLS: dict[str, Check[ServerProbe]] = {
    "HSTS": _strict,
    "certificate": _certificate,
    "http": _unencrypted,
}
