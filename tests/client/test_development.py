"""Development: a throwaway state, no caps, sent at once, each outcome logged; a test batch."""

from __future__ import annotations

import logging
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from veilcount_client import Client
from veilcount_client.options import Definitions
from veilcount_client.testing import RecordingTransport, SettableClock
from veilcount_shared import parse_collections

from .device_fixtures import definitions_text

FILE = Path(__file__).parents[2] / "docs" / "collections.toml"
NOON = datetime(2026, 12, 3, 12, tzinfo=UTC)


RARELY = definitions_text(
    "acme-editor",
    {"from": "2026-09-01", "until": "2027-01-01", "answers": 1, "takes": "last"},
    theme={"values": ["light", "dark"], "cohort": {"draw": "half", "number": 0, "of": 2}},
)


def developing(transport: RecordingTransport, definitions: Definitions = FILE) -> Client:
    client = Client(
        "http://127.0.0.1:9",
        collections=definitions,
        development=True,
        strict=True,
        transport=transport,
        clock=SettableClock(NOON),
        threaded=False,
    )
    client.consent(True)
    return client


def test_every_record_is_sent_at_once_and_alone(caplog: pytest.LogCaptureFixture) -> None:
    """Nothing is frozen and no cap is reached; the verdict is logged, and never a value."""
    transport = RecordingTransport()
    with caplog.at_level(logging.INFO, "veilcount"), developing(transport) as client:
        for _ in range(20):
            client.record("theme", "dark")
        flushed = client.flush()

    assert flushed
    assert len({report.pseudonym for report in transport.reports}) == len(transport.reports) == 20
    assert all(batch.test for batch in transport.batches)
    assert "reports: counted" in caplog.text
    assert "dark" not in caplog.text


def test_a_record_is_sent_whomever_the_draw_selects_and_whatever_the_period_takes() -> None:
    transport = RecordingTransport()
    with developing(transport, parse_collections(RARELY, lambda _: ())) as client:
        for _ in range(20):
            client.record("theme", "dark")
        client.flush()

    assert len(transport.reports) == 20


def test_a_campaign_not_yet_begun_is_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    later = RARELY.replace("2026-09-01", "2026-12-24")
    with developing(RecordingTransport(), parse_collections(later, lambda _: ())):
        pass

    assert "campaign theme: it is 2026-12-03, the campaign starts 2026-12-24" in caplog.text


def test_its_state_goes_with_the_process(tmp_path: Path) -> None:
    """Nothing is left in the folder for temporary files, and the app's own state is not touched."""
    script = f"""
from veilcount_client import Client
client = Client("http://127.0.0.1:9", collections={str(FILE)!r}, development=True)
client.consent(True)
client.record("theme", "dark")
"""
    environment = {"TMPDIR": str(tmp_path), "XDG_STATE_HOME": str(tmp_path / "state"), "PATH": ""}
    subprocess.run([sys.executable, "-c", script], env=environment, check=True, timeout=60)

    assert list(tmp_path.iterdir()) == []
