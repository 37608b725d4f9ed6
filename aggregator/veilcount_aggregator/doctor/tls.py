"""Is the way to a server private: its certificate, and what the same host says in clear."""

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
from .finding import Check, CheckResult, ok, warn, wrong
from .http_probe import PROXY, SECONDS, ServerProbe

SOON = timedelta(days=14)
PORT = 443


def _private(probe: ServerProbe) -> Iterator[CheckResult]:
    if probe.secure:
        yield ok("TLS, with a certificate that is believed")
    elif key_url_problem(probe.url):
        yield wrong(
            "http: anyone on the network path can read pseudonyms and forge responses",
            "end TLS in a proxy in front, and give devices an https:// address",
        )
    else:
        yield ok("http, on this machine alone")


def _strict(probe: ServerProbe) -> Iterator[CheckResult]:
    if "Strict-Transport-Security" in probe.request("GET", "/healthz").headers:
        yield ok("HSTS is announced")
    else:
        fix = f"{PROXY}: add Strict-Transport-Security: max-age=31536000"
        yield warn("no HSTS: a first visit in a browser may go over http", fix)


def _certificate(probe: ServerProbe) -> Iterator[CheckResult]:
    """Look how long the certificate holds."""
    try:
        ends = _ends(probe.url)
    except OSError as error:  # behind a proxy of our own, say
        told = f"how long its certificate holds could not be seen: {error}"
        yield warn(told, "look with openssl s_client")
        return
    told = f"its certificate holds until {ends:%Y-%m-%d}"
    if ends - probe.clock() < SOON:
        yield warn(told, "renew it: devices send nothing to a server they cannot believe")
    else:
        yield ok(told)


def _ends(url: str) -> datetime:
    """Shake hands once more, trusting those that requests trusts; return the certificate's end."""
    parts = urlsplit(url)
    with (
        socket.create_connection((parts.hostname, parts.port or PORT), SECONDS) as plain_socket,
        _trusting(url).wrap_socket(plain_socket, server_hostname=parts.hostname) as wrapped,
    ):
        shown = wrapped.getpeercert() or {}
    return datetime.fromtimestamp(ssl.cert_time_to_seconds(str(shown["notAfter"])), UTC)


def _trusting(url: str) -> ssl.SSLContext:
    with requests.Session() as session:
        trusted = session.merge_environment_settings(url, {}, False, None, None)["verify"]
    bundle = Path(trusted if isinstance(trusted, str) else DEFAULT_CA_BUNDLE_PATH)
    if bundle.is_dir():
        return ssl.create_default_context(capath=bundle)
    return ssl.create_default_context(cafile=bundle)


def _in_clear(probe: ServerProbe) -> Iterator[CheckResult]:
    """Look what the same host says over http; nothing, or a redirect, is right."""
    parts = urlsplit(probe.url)
    if parts.port is not None:
        yield ok("not looked at: the address names a port")
        return
    yield from http_redirect(f"http://{parts.hostname}")


def http_redirect(url: str) -> Iterator[CheckResult]:
    """Yield what a host says where it speaks without TLS."""
    try:
        reply = requests.get(f"{url}/healthz", timeout=SECONDS, allow_redirects=False)
    except requests.RequestException:
        yield ok(f"nobody answers at {url}")
        return
    if reply.headers.get("Location", "").startswith("https://"):
        yield ok(f"{url} sends on to https")
    else:
        fix = f"{PROXY}: answer nothing there but a redirect to https"
        yield wrong(f"{url} answers in clear, with HTTP {reply.status_code}", fix)


TRANSPORT: dict[str, Check[ServerProbe]] = {"transport": _private}
TLS: dict[str, Check[ServerProbe]] = {
    "HSTS": _strict,
    "certificate": _certificate,
    "in clear": _in_clear,
}
