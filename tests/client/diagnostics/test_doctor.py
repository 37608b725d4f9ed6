"""doctor: each line says what to do, and nothing is changed; the commands, and their exit codes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import Mock

import pytest

from veilcount_client import Client
from veilcount_client.__main__ import run
from veilcount_client.delivery.transport import Later
from veilcount_client.diagnostics.doctor import examine
from veilcount_client.diagnostics.state_checks import check_state
from veilcount_client.settings import ClientSettings, read_settings
from veilcount_client.testing import RecordingTransport, SettableClock
from veilcount_shared import parse_collections
from veilcount_shared.diagnostic_result import DiagnosticResult
from veilcount_shared.problem_details import TYPE_PREFIX

from ...aggregator.operate.cli.server_fixtures import listening
from ...aggregator.web.api.deployment_fixtures import deployment
from ..delivery.app_client import NOBODY
from ..delivery.server_fixtures import answering, serving
from ..device_fixtures import Device, at, one_collection
from .app_file import FILE, NOW

DISK = Path(__file__).parents[3] / "build"
MEMORY = Path("/dev/shm/veilcount")  # noqa: S108 - nothing is made there
IN_MEMORY = pytest.mark.skipif(not MEMORY.parent.is_dir(), reason="needs a directory in memory")


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """A folder on a disk: one in memory is what `doctor` warns of."""
    DISK.mkdir(exist_ok=True)
    with TemporaryDirectory(dir=DISK) as folder:
        yield Path(folder)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "collections.toml"
    path.write_text(FILE, encoding="utf-8")
    return path


@pytest.fixture
def settings(file: Path, tmp_path: Path) -> ClientSettings:
    return settings_of(collections=file, state=tmp_path / "state", url=NOBODY)


def settings_of(**options: object) -> ClientSettings:
    """Return settings as from the command line; names in capitals are environment variables."""
    texts = {name: str(value) for name, value in options.items()}
    environment = {name: texts.pop(name) for name in [*texts] if name.isupper()}
    return read_settings(environment, **texts)


def found(settings: ClientSettings, now: datetime = NOW) -> dict[str, DiagnosticResult]:
    return {each.subject: each for each in examine(settings, now.timestamp)}


def is_wrong(result: DiagnosticResult, words: str) -> bool:
    """Whether something is to be done, and these words say what."""
    return not result.ok and words in result.message


def client(settings: ClientSettings, transport: RecordingTransport | None = None) -> Client:
    return Client(
        settings.url,
        collections=settings.collections,
        state_dir=settings.state,
        persons=settings.persons,
        transport=transport or RecordingTransport(),
        clock=SettableClock(NOW),
        threaded=False,
    )


# -- the machine -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "subject", "words"),
    [
        ({"VEILCOUNT_DISABLED": 1}, "kill switch", "VEILCOUNT_DISABLED is set"),
        ({"DO_NOT_TRACK": 1}, "kill switch", "DO_NOT_TRACK is set"),
        ({}, "definitions", "--collections"),
        ({}, "aggregator", "--url"),
        ({"url": NOBODY}, "aggregator", NOBODY),
        ({"state": "ftp://host"}, "state", "redis://"),
        ({"state": f"{__file__}/state"}, "directory", "Not a directory"),
        pytest.param({"state": MEMORY}, "directory", "in memory", marks=IN_MEMORY),
    ],
)
def test_a_setting_that_keeps_everything_here_is_named(
    file: Path, options: dict[str, object], subject: str, words: str
) -> None:
    definitions = {"collections": file} if "state" in options else {}

    assert is_wrong(found(settings_of(**options, **definitions))[subject], words)


def test_definitions_that_do_not_load_are_explained(file: Path) -> None:
    file.write_text('app = "a"\n[b]\nepsilon = 99', encoding="utf-8")

    assert is_wrong(found(settings_of(collections=file))["definitions"], "[b]")


def test_a_clock_outside_the_campaign_is_named(settings: ClientSettings) -> None:
    early, late = datetime(2026, 10, 31, tzinfo=UTC), datetime(2027, 5, 1, tzinfo=UTC)

    assert found(settings)["clock, theme"].ok
    assert is_wrong(found(settings, early)["clock, theme"], "starts 2026-11-01")
    assert is_wrong(found(settings, late)["clock, theme"], "ended 2027-05-01")


def test_a_directory_that_cannot_be_written_is_named(
    settings: ClientSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    writable = found(settings)["directory"].ok
    monkeypatch.setattr("tempfile.TemporaryFile", Mock(side_effect=PermissionError(13, "denied")))

    assert writable
    assert is_wrong(found(settings)["directory"], "make it writable")


# -- the state -------------------------------------------------------------------------------------


def test_the_doctor_makes_no_state_and_sets_no_ceiling(
    settings: ClientSettings, file: Path, tmp_path: Path
) -> None:
    """A look with a larger file does not make the app's own file the second."""
    first = found(settings)
    made = (tmp_path / "state").exists()
    with client(settings) as app:
        before = app.reservation.ceilings
    file.write_text(FILE.replace("epsilon = 1\n", "epsilon = 2\n"), encoding="utf-8")
    larger = found(settings)["ceiling, theme"]
    file.write_text(FILE, encoding="utf-8")

    assert not made
    assert not first["consent"].ok
    assert "8 in all, 2 a day" in first["ceiling"].message
    assert is_wrong(larger, "raise it")
    with client(settings) as app:
        assert app.reservation.ceilings == before
        assert not app.reservation.refused


def test_missing_consent_is_reported(settings: ClientSettings, file: Path) -> None:
    """A person who was not asked is something to do, a no is not; a new form is asked for again.

    Of many persons those who consented are counted.
    """
    many = replace(settings, persons=True, state=f"{settings.state} of many")
    with client(many) as app:
        assert is_wrong(found(many)["consent"], "0 persons consented: call consent(...)")
        app.person(1).consent(True)
    assert found(many)["consent"] == DiagnosticResult("consent", True, "1 persons consented")
    with client(settings) as app:
        assert is_wrong(found(settings)["consent"], "not asked")
        app.consent(False)
        assert found(settings)["consent"].ok
        assert "said no" in found(settings)["consent"].message
        app.consent(True)
    covered = found(settings)["consent"]
    file.write_text(FILE.replace("epsilon = 0.5", "epsilon = 0.25"), encoding="utf-8")

    assert covered.ok
    assert is_wrong(found(settings)["consent"], "does not cover saved: ask again")


def test_the_outbox_is_explained(settings: ClientSettings) -> None:
    """Reports leave at a random time; only failed attempts are a reason to look at the server."""
    transport = RecordingTransport()
    with client(settings, transport) as app:
        app.consent(True)
        app.record("theme", "dark")
        app.flush(until="stored")
        waiting = found(settings)["outbox"]
        overdue = found(settings, NOW + timedelta(days=6))["outbox"]
        transport.outcome = Later("offline", 60)
        app.flush()

    assert (waiting.ok, overdue.ok) == (True, True)
    assert "1 waiting for their time" in waiting.message
    assert "and due: they leave while the app runs" in overdue.message
    assert is_wrong(found(settings)["outbox"], "failed attempts: 1")


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"takes": "last", "held": "device"}, "empty; values that wait for their instants: 1"),
        ({"model": "central", "budget": 1}, "empty; what the app has in memory is not seen here"),
        ({"takes": "last"}, "empty; what the app has in memory is not seen here"),
        ({"measure": "trend", "changes": 1}, "empty; states of trends, kept between reports: 1"),
        ({"takes": "returning"}, "; last visits, kept for the next: 1"),
        ({}, "1 waiting for their time, the next leaves 2026-12-"),
    ],
)
def test_values_that_are_kept_are_counted_with_the_outbox(
    keys: dict[str, object], words: str, tmp_path: Path
) -> None:
    """Each by what it is; of what only the app's process has, that it is not seen."""
    collections = one_collection("it", **keys)
    app = Device(tmp_path, collections, at(0, 0, 60), person=1, trust_curator=True)
    app.record()
    settings = settings_of(state=tmp_path, trust_curator=True)
    results = check_state(tmp_path, settings, collections, app.clock.now())
    outbox = next(each for each in results if each.subject == "outbox")

    assert outbox.ok
    assert words in outbox.message
    assert ("not seen" in outbox.message) is ("not seen" in words)


def test_in_development_neither_ceiling_nor_consent_of_a_state_is_examined(file: Path) -> None:
    """Each process has a state of its own, which is empty for another one."""
    results = found(settings_of(collections=file, VEILCOUNT_DEVELOPMENT=1))

    assert results["state"].ok
    assert "a temporary one of each process" in results["state"].message
    assert {"ceiling", "consent", "directory", "outbox"}.isdisjoint(results)


def test_losses_come_with_advice(settings: ClientSettings) -> None:
    """What can be corrected is reported; a frozen answer is as it should be."""
    with client(settings) as app:
        app.consent(True)
        app.record("colour", "red")
        app.record("theme", "dark")
        app.record("theme", "dark")
    lost = [each.message for each in examine(settings, NOW.timestamp) if each.subject == "lost"]

    advice = "a name that the definitions do not have: see the app's log"
    assert lost == [f"1 unknown of colour: {advice}"]


# -- the aggregator --------------------------------------------------------------------------------


def test_an_aggregator_in_production_is_ok(tmp_path: Path) -> None:
    """It rejects the test batch by name, counts nothing; a clock is off by more than the jitter."""
    with deployment(tmp_path, FILE, now=NOW) as aggregator, listening(aggregator.app) as url:
        now = datetime.now(UTC)
        results = found(settings_of(url=url), now)

        aggregator_line = results["aggregator"]
        assert (aggregator_line.ok, aggregator_line.message) == (True, f"{url} speaks version 1")
        assert results["clock"].ok
        assert not any(aggregator.counted(name) for name in parse_collections(FILE, lambda _: []))
        for off in (timedelta(hours=-2), timedelta(hours=2), timedelta(days=-2000)):
            assert is_wrong(found(settings_of(url=url), now + off)["clock"], "NTP")


PROBLEM = "application/problem+json"


@pytest.mark.parametrize(
    ("status", "kind", "body", "words"),
    [
        (401, "text/plain", "", "VEILCOUNT_KEY"),
        (404, "text/html", "<html>", "no aggregator"),
        (503, "text/plain", "", "busy or down"),
        (400, PROBLEM, f'{{"type": "{TYPE_PREFIX}unknown-version"}}', "same release"),
        (400, PROBLEM, "not JSON", "proxy"),
        (400, PROBLEM, "[]", "proxy"),
        (200, "application/json", '{"verdicts": []}', "development"),
    ],
)
def test_other_replies_are_explained(status: int, kind: str, body: str, words: str) -> None:
    with serving(answering(status, body.encode(), Content_Type=kind)) as server:
        result = found(settings_of(url=server.url))["aggregator"]

    assert result.ok is (status == 200)
    assert words in result.message


# -- the commands ----------------------------------------------------------------------------------


def test_check_exits_by_what_it_found(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """0 nothing to decide, 1 something, 2 a file that cannot be used; as JSON, too."""
    changed, broken = tmp_path / "changed.toml", tmp_path / "broken.toml"
    changed.write_text(FILE.replace("epsilon = 0.5", "epsilon = 2"), encoding="utf-8")
    broken.write_text("app", encoding="utf-8")

    assert run(["check", str(file), "--against", str(file)]) == 0
    assert run(["check", str(changed), "--against", str(file)]) == 1
    assert run(["check", str(broken)]) == 2
    capsys.readouterr()
    run(["check", str(file), "--json"])
    report = json.loads(capsys.readouterr().out)
    assert report["ok"] is True
    assert {each["subject"] for each in report["results"]} == {"theme", "saved"}


def test_the_doctor_is_a_command(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It prints a line each, and exits 1 with something to do, 2 for a variable it cannot read."""
    state = str(tmp_path / "state")
    code = run(["doctor", "--collections", str(file), "--url", NOBODY, "--state-dir", state])
    output = capsys.readouterr()
    monkeypatch.setenv("VEILCOUNT_JITTER", "soon")

    assert (code, output.err) == (1, "")
    assert "fix   aggregator:" in output.out
    assert "ok    definitions: theme, saved" in output.out
    assert run(["doctor"]) == 2
    assert "soon" in capsys.readouterr().err


def test_the_doctor_exits_with_0_if_all_is_well(
    file: Path, settings: ClientSettings, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """An app that was started, a person who consented, an aggregator that replies."""
    today = datetime.now(UTC).date()
    file.write_text(
        FILE.replace("2026-11-01", f"{today}").replace("2027-05-01", f"{today.year + 2}-01-01"),
        encoding="utf-8",
    )
    with client(settings) as app:
        app.consent(True)
    monkeypatch.delenv("DO_NOT_TRACK", raising=False)
    with deployment(tmp_path, now=NOW) as aggregator, listening(aggregator.app) as url:
        monkeypatch.setenv("VEILCOUNT_URL", url)

        assert run(["doctor", "--collections", str(file), "--state-dir", str(settings.state)]) == 0
