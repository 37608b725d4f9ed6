"""Checks of a running server from outside, and through proxies that spoil something."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

import pytest

from veilcount_aggregator.operate.cli.main import run
from veilcount_aggregator.operate.doctor import Finding, Severity, examine_server
from veilcount_aggregator.operate.doctor.server_checks import http_redirect
from veilcount_aggregator.records.api_keys import Role, create_key
from veilcount_serving.errors import SettingsError

from ....processes import HOST
from ....system.server import Server, free_port
from ...web.api.deployment_fixtures import FILE, deployment
from ..cli.server_fixtures import listening
from .doctor_fixtures import by_check, wall_clock


def examine(url: str, key: str = "", off: timedelta = timedelta(0)) -> dict[str, Finding]:
    return by_check(examine_server(url, key, lambda: wall_clock() + off))


def test_a_real_server_passes_and_a_stopped_one_does_not(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with deployment(tmp_path, FILE) as made:
        url = made.aggregator.settings.store.partition("?")[0]
        _, analyst = create_key(made.aggregator.store, Role.ANALYST, "ann", made.clocks.now)
    with Server(url, tmp_path) as server:
        arguments = ["doctor", "--url", server.url, "--key", analyst, "--json"]
        served, document = run(arguments), json.loads(capsys.readouterr().out)
    stopped, after = run(arguments), json.loads(capsys.readouterr().out)

    assert (served, document["state"]) == (0, "ok")
    assert {each["check"] for each in document["findings"]} >= {"ready", "clock", "bodies", "key"}
    assert (stopped, after["state"]) == (1, "wrong")
    assert "Connection refused" in after["findings"][0]["what"]


Proxy = Callable[[WSGIApplication], WSGIApplication]


def with_headers(**headers: str) -> Proxy:
    """Add headers to each response; an empty one is removed."""
    changed = {name.replace("_", "-"): value for name, value in headers.items()}

    def proxy(app: WSGIApplication) -> WSGIApplication:
        def serve(environ: WSGIEnvironment, start: StartResponse) -> Any:
            def begin(status: str, original: list[tuple[str, str]], *_: Any) -> Any:
                kept = [pair for pair in original if pair[0] not in changed]
                return start(status, kept + [pair for pair in changed.items() if pair[1]])

            return app(environ, begin)

        return serve

    return proxy


def responding(path: str, status: str, most: int = 0, **headers: str) -> Proxy:
    """Respond in place of the aggregator on one path, to bodies of a size or more."""

    def proxy(app: WSGIApplication) -> WSGIApplication:
        def serve(environ: WSGIEnvironment, start: StartResponse) -> Any:
            size = int(environ.get("CONTENT_LENGTH") or 0)
            if environ["PATH_INFO"] != path or size < most:
                return app(environ, start)
            environ["wsgi.input"].read(size)
            start(status, [("Content-Type", "text/html"), *headers.items()])
            return [b"<h1>proxy</h1>"]

        return serve

    return proxy


@pytest.mark.parametrize(
    ("proxy", "check", "message"),
    [
        (with_headers(Set_Cookie="lb=1"), "headers", "cookie"),
        (with_headers(Cache_Control=""), "headers", "no-store is missing"),
        (with_headers(Age="7"), "headers", "came from a cache"),
        (responding("/v1/reports", "413 Too Large", 1 << 19), "bodies", "720,896 bytes"),
        (responding("/v1/reports", "301 Moved", Location="/x"), "bodies", "redirect"),
        (responding("/v1/reports", "502 Bad Gateway"), "bodies", "not from the aggregator"),
        (responding("/metrics", "200 OK"), "access", "/metrics works without a key"),
        (responding("/healthz", "200 OK"), "responds", "not an aggregator"),
        (responding("/healthz", "302 Found", Location="/login"), "responds", "HTTP 302"),
        (responding("/readyz", "200 OK"), "ready", "the check failed"),
    ],
    ids=lambda value: value.replace(" ", "-") if isinstance(value, str) else "",
)
def test_what_a_proxy_breaks_is_found(
    tmp_path: Path, proxy: Proxy, check: str, message: str
) -> None:
    with deployment(tmp_path, FILE) as made, listening(proxy(made.app.wsgi_app)) as url:
        found = examine(url)[check]

    assert found.state is Severity.WRONG
    assert message in found.what


def test_clock_key_version_and_read_only_mode_are_checked(tmp_path: Path) -> None:
    with deployment(tmp_path, FILE) as made, listening(made.app.wsgi_app) as url:
        healthy, skewed = examine(url), examine(url, off=timedelta(minutes=5))
        keyed = examine(url, made.key(Role.DEVICE))
        made.aggregator.store.set_read_only(on=True)
        read_only = examine(url)
        made.aggregator.store.set_read_only(on=False)

    assert (healthy["clock"].state, skewed["clock"].state) == (Severity.OK, Severity.WARN)
    assert "CPython" in healthy["headers"].what
    assert keyed["key"].state is Severity.WRONG
    assert keyed["bodies"].state is Severity.OK  # rejected for the missing key, so they arrived
    assert "read-only" in read_only["ready"].what


def test_the_certificate_and_hsts_are_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    both = certificate(tmp_path)
    strict = with_headers(Strict_Transport_Security="max-age=31536000")
    with deployment(tmp_path, FILE) as made, listening(strict(made.app.wsgi_app), both) as url:
        untrusted = examine(url)
        monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(tmp_path / "certificate.pem"))
        trusted = examine(url)
        earlier = examine(url, off=-timedelta(days=20))

    assert list(untrusted) == ["responds"]
    assert untrusted["responds"].what == "its certificate is not trusted: self-signed certificate"
    assert (trusted["transport"].state, trusted["HSTS"].state) == (Severity.OK, Severity.OK)
    assert "valid until 20" in trusted["certificate"].what
    assert trusted["certificate"].state is Severity.WARN  # for two days
    assert earlier["certificate"].state is Severity.OK


def certificate(folder: Path) -> Path:
    both = folder / "both.pem"
    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"]
    command = ["openssl", "req", "-x509", *key, "-nodes", "-days", "2"]
    name = ["-subj", f"/CN={HOST}", "-addext", f"subjectAltName=IP:{HOST}"]
    files = ["-keyout", str(both), "-out", str(folder / "certificate.pem")]
    subprocess.run([*command, *name, *files], check=True, capture_output=True)
    both.write_text(both.read_text() + (folder / "certificate.pem").read_text())
    return both


def test_http_may_only_redirect(tmp_path: Path) -> None:
    location = "https://stats.example.org/"
    redirect = responding("/healthz", "308 Permanent Redirect", Location=location)
    with deployment(tmp_path, FILE) as made:
        with listening(made.app.wsgi_app) as url:
            (unencrypted,) = http_redirect(url)
        with listening(redirect(made.app.wsgi_app)) as url:
            (redirected,) = http_redirect(url)
        (nobody,) = http_redirect(f"http://{HOST}:{free_port()}")

    states = [unencrypted.state, redirected.state, nobody.state]
    assert states == [Severity.WRONG, Severity.OK, Severity.OK]


@pytest.mark.parametrize(
    ("url", "key", "message"),
    [
        ("stats.example.org", "", "https://"),
        ("ftp://x", "", "https://"),
        ("http://", "", "https://"),
        ("http://x:99999", "", "https://"),
        ("http://stats.example.org", "secret", "in clear"),
    ],
)
def test_an_invalid_address_and_an_unencrypted_key_are_refused(
    url: str, key: str, message: str
) -> None:
    with pytest.raises(SettingsError, match=message):
        list(examine_server(url, key, wall_clock))
