"""Plain http to elsewhere: refused with the app's key, reported without one."""

from __future__ import annotations

import logging
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from veilcount_client import Client, NotUsable
from veilcount_client.delivery.transport import in_clear
from veilcount_client.diagnostics import doctor
from veilcount_client.diagnostics.doctor import ProbeResult
from veilcount_client.settings import read_settings
from veilcount_client.testing import RecordingTransport, SettableClock
from veilcount_shared.diagnostic_result import DiagnosticResult

from .device_fixtures import one_collection

ELSEWHERE = "http://stats.example.org"
COLLECTIONS = one_collection("it")
NOW = datetime(2026, 12, 3, 12, tzinfo=UTC)


def client_at(folder: Path, url: str, **options: Any) -> Client:
    """Return a client that has not sent anything."""
    defaults: dict[str, Any] = {"clock": SettableClock(NOW), "threaded": False}
    return Client(url, collections=COLLECTIONS, state_dir=folder, **(defaults | options))


@pytest.mark.parametrize(
    "url", [ELSEWHERE, "HTTP://10.0.0.7", "http://localhost.example.org", "http://[2001:db8::1]:80"]
)
def test_http_to_elsewhere_is_in_clear(url: str) -> None:
    assert in_clear(url, None).startswith("over http:// pseudonyms travel in clear: give https://")
    assert in_clear(url, "key").startswith("over http:// the key would travel in clear: give https")


@pytest.mark.parametrize(
    "url",
    [
        "https://stats.example.org",
        "http://127.8.9.1",
        "http://[::1]:80",
        "http://LOCALHOST",
        "",
        "http://[::1",
    ],
)
def test_tls_the_loopback_and_an_invalid_address_are_not(url: str) -> None:
    assert in_clear(url, "key") == in_clear(url, None) == ""


def test_without_a_key_it_is_logged_once_and_goes_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A line in the log and in `explain`, also in a strict app; what is recorded will leave."""
    with caplog.at_level(logging.WARNING, "veilcount"):
        client = client_at(tmp_path, ELSEWHERE, strict=True)
    client.consent(True)
    client.record("it", True)

    reason = f"address: {in_clear(ELSEWHERE, None)}"
    assert client.flush(until="stored")
    assert [each.message for each in caplog.records] == [f"veilcount, {reason}"]
    assert reason in client.explain("it").reasons
    client.close(0)


def test_with_a_key_nothing_is_opened(tmp_path: Path) -> None:
    """`explain` names the reason and the fix, and not the key; a strict client raises."""
    client = client_at(tmp_path / "state", ELSEWHERE, key="veilcount_device_secret")
    client.record("it", True)
    explanation = client.explain("it")

    assert not (tmp_path / "state").exists()
    assert explanation.losses == {"no_state": 1}
    assert explanation.reasons[0] == f"open: {in_clear(ELSEWHERE, 'key')}"
    assert "secret" not in str(explanation)
    with pytest.raises(NotUsable, match="give https://"):
        client_at(tmp_path, ELSEWHERE, key="key", strict=True)


def test_a_transport_of_the_apps_own_needs_no_address(tmp_path: Path) -> None:
    with client_at(tmp_path, ELSEWHERE, key="key", transport=RecordingTransport()) as client:
        [reason] = client.explain("it").reasons

    assert reason == ("consent: the person was not asked: if client.must_ask: client.consent(...)")


@pytest.mark.parametrize("key", [None, "key"])
def test_the_doctor_sends_nobody_the_key(key: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a key it looks further."""
    probed: list[str] = []

    def probe(url: str, *_: object) -> ProbeResult:
        probed.append(url)
        return ProbeResult(True, f"{url} replies")

    monkeypatch.setattr(doctor, "probe", probe)
    results = doctor.examine(read_settings({}, url=ELSEWHERE, key=key))

    assert DiagnosticResult("address", False, in_clear(ELSEWHERE, key)) in list(results)
    assert probed == ([] if key else [ELSEWHERE])
