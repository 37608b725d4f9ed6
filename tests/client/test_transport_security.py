"""Plain http to elsewhere: with the app's key it is refused, without one it is said."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

import pytest

from veilcount_client import Client, NotUsable
from veilcount_client.diagnostics import doctor as examining
from veilcount_client.diagnostics.result import DiagnosticResult
from veilcount_client.diagnostics.server_probe import ProbeResult
from veilcount_client.settings import read_settings
from veilcount_client.testing import RecordingTransport, SettableClock
from veilcount_client.transport_security import in_clear

from .device_fixtures import one_collection

ELSEWHERE = "http://stats.example.org"
COLLECTIONS = one_collection("it")
NOW = datetime(2026, 12, 3, 12, tzinfo=UTC)


def a_client(place: Path, url: str, **options: object) -> Client:
    """Return a client that has not sent anything."""
    given: Mapping[str, object] = {"clock": SettableClock(NOW), "threaded": False} | options
    return Client(url, collections=COLLECTIONS, state_dir=place, **given)  # type: ignore[arg-type] # options of a client


@pytest.mark.parametrize(
    "url",
    [ELSEWHERE, "HTTP://Stats.Example.org:8420", "http://10.0.0.7", "http://localhost.example.org",
     "http://[2001:db8::1]:80/path", "http://0.0.0.0:8420"],
)  # fmt: skip
def test_http_to_elsewhere_is_in_clear(url: str) -> None:
    assert in_clear(url, None).startswith("over http:// pseudonyms travel in clear: give https://")
    assert in_clear(url, "key").startswith("over http:// the key would travel in clear: give https")


@pytest.mark.parametrize(
    "url",
    ["https://stats.example.org", "http://127.0.0.1:8420", "http://127.8.9.1", "http://[::1]:80",
     "http://localhost:8420", "http://LOCALHOST", "stats.example.org", "http://", "http://[::1",
     ""],
)  # fmt: skip
def test_tls_the_loopback_and_what_is_no_address_are_not(url: str) -> None:
    assert in_clear(url, "key") == in_clear(url, None) == ""


@pytest.mark.parametrize("strict", [False, True])
def test_without_a_key_it_is_logged_once_and_goes_on(
    tmp_path: Path,
    strict: bool,  # noqa: FBT001
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A complaint in the log and in `explain`; what is recorded is stored and will leave."""
    with caplog.at_level(logging.WARNING, "veilcount"):
        client = a_client(tmp_path, ELSEWHERE, strict=strict)
    client.consent(True)
    client.record("it", True)

    assert client.flush(until="stored")
    assert [each.message for each in caplog.records] == [
        f"veilcount, address: {in_clear(ELSEWHERE, None)}"
    ]
    assert f"address: {in_clear(ELSEWHERE, None)}" in client.explain("it").reasons
    client.close(0)


def test_with_a_key_it_is_refused(tmp_path: Path) -> None:
    """Nothing is opened, nothing could be sent; why is said, and what to do, and not the key."""
    client = a_client(tmp_path / "state", ELSEWHERE, key="veilcount_device_secret")
    client.consent(True)
    client.record("it", True)
    told = client.explain("it")

    assert not (tmp_path / "state").exists()
    assert told.losses == {"no_state": 1}
    assert told.reasons[0] == f"open: {in_clear(ELSEWHERE, 'key')}"
    assert "secret" not in str(told)


def test_with_a_key_a_strict_client_raises(tmp_path: Path) -> None:
    """strict=True."""
    with pytest.raises(NotUsable, match="give https://"):
        a_client(tmp_path, ELSEWHERE, key="key", strict=True)


def test_a_transport_of_ones_own_needs_no_address(tmp_path: Path) -> None:
    """In a test nothing travels."""
    client = a_client(tmp_path, ELSEWHERE, key="key", transport=RecordingTransport())

    assert client.explain("it").reasons == ("consent: the person was not asked: call consent(...)",)
    client.close(0)


@pytest.mark.parametrize("key", [None, "key"])
def test_the_doctor_says_so_and_shows_nobody_the_key(
    key: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a key it looks further."""
    called: list[str] = []

    def call(url: str, *_: object) -> ProbeResult:
        called.append(url)
        return ProbeResult(True, f"{url} answers")

    monkeypatch.setattr(examining, "probe", call)
    settings = read_settings({}, url=ELSEWHERE, key=key)
    told = [each for each in examining.examine(settings) if each.subject == "address"]

    assert told == [DiagnosticResult("address", False, in_clear(ELSEWHERE, key))]
    assert called == ([] if key else [ELSEWHERE])
