"""Commands with the kit, as real processes: consent, the notice, and delivery by a sender.

A command neither opens a socket nor waits for who does, and no fault of the machine makes it fail.
"""

from __future__ import annotations

import os
import sqlite3
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from veilcount_client.integrations.cli_kit import Telemetry, attendance, detached, sender_lock
from veilcount_client.integrations.cli_kit.sender_lock import SenderLock

from ...aggregator.operate.cli.server_fixtures import listening
from ...aggregator.web.api.deployment_fixtures import deployment
from ..delivery.server_fixtures import counting, nobody, serving, silent, wait_until
from .command_app import ATTACHED, BURST, FROZEN, SOCKET_CODE
from .commands import APP, FILE, Machine, machine

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")

FRAMEWORKS = ("click", "typer", "argparse")
AGREED = "Statistics are on."
NOTICE = "convert would like to count this, if you agree:\n  Which theme is active?"


def waiting(place: Machine) -> int:
    """Return how many reports the state has that have not left."""
    with closing(sqlite3.connect(place.state / "veilcount.db")) as database:
        return int(
            database.execute("select count(*) from report where status = 'waiting'").fetchone()[0]
        )


# -- the whole way ---------------------------------------------------------------------------------


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_a_command_is_counted_by_an_aggregator(framework: str, tmp_path: Path) -> None:
    """Who did not agree is not; who agreed is, once, by a process that outlives the command."""
    with (
        deployment(tmp_path, FILE, now=datetime.now(UTC)) as deployed,
        listening(deployed.app.wsgi_app) as url,
        machine(url) as place,
    ):
        assert place.run("convert", "dark", FRAMEWORK=framework) == "converted, dark\n"
        assert not place.state.exists()
        assert AGREED in place.run("telemetry", "on", FRAMEWORK=framework)
        place.run("convert", "dark", FRAMEWORK=framework)
        place.run("convert", "light", FRAMEWORK=framework)

        assert wait_until(lambda: deployed.counted("theme") == deployed.counted("font") == 1)
        assert wait_until(lambda: not place.senders())
        shown = place.run("telemetry", "show", FRAMEWORK=framework)
        assert place.run("telemetry", "status", FRAMEWORK=framework).count("\n") == 1
        assert shown.count("delivered: ") == 2


# -- who is asked, and who is not ------------------------------------------------------------------


@pytest.fixture
def offline() -> Iterator[Machine]:
    """A machine whose server nobody reaches."""
    with nobody() as url, machine(url) as place:
        yield place


def test_the_notice_is_shown_once_on_a_terminal(offline: Machine) -> None:
    """Behind what the command prints, and never again; nothing is recorded by it."""
    first, second = (offline.run_on_terminal("convert", "dark") for _ in range(2))
    status = offline.run("telemetry", "status")

    assert first.startswith(f"converted, dark\n{NOTICE}")
    assert "What is sent: Your answer is changed at random on your device" in first
    assert "`convert telemetry on`" in first
    assert second == "converted, dark\n"
    assert "you have not decided" in status
    assert waiting(offline) == 0


def test_a_notice_names_what_an_update_adds(offline: Machine) -> None:
    offline.run("telemetry", "on")
    old = offline.run_on_terminal("convert", "dark")
    raised: dict[str, Any] = dict.fromkeys(("VEILCOUNT_CEILING", "VEILCOUNT_DAILY_CEILING"), "3")
    _, head, table = FILE.partition("[font]")
    added = (head + table).replace("font", "size")
    (offline.folder / "collections.toml").write_text(FILE + added, encoding="utf-8")
    new = offline.run_on_terminal("convert", "dark", **raised)

    assert old == "converted, dark\n"
    assert "Which size?" in new
    assert "Which font?" not in new
    assert ": size.\n" in offline.run("telemetry", "status", **raised)


@pytest.mark.parametrize("variable", attendance.CI_VARIABLES)
def test_a_build_machine_is_left_alone(
    variable: str, offline: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its terminal too: some have one."""
    monkeypatch.setattr(sys, "stderr", SimpleNamespace(isatty=lambda: True))
    others = dict.fromkeys(attendance.CI_VARIABLES, "")

    assert attendance.is_attended(others)
    assert attendance.is_attended(others | {variable: "false"})
    assert not attendance.is_attended(others | {variable: "true"})


@pytest.mark.parametrize("variables", [{"CI": "true"}, {"GITHUB_ACTIONS": "true"}])
def test_in_ci_only_a_consent_opens_anything(variables: dict[str, Any], offline: Machine) -> None:
    assert offline.run_on_terminal("convert", "dark", **variables) == "converted, dark\n"
    assert not offline.state.exists()

    offline.run("telemetry", "on")
    offline.run("convert", "dark", **variables)
    assert waiting(offline) == 2


@pytest.mark.parametrize("variable", ["DO_NOT_TRACK", "VEILCOUNT_DISABLED"])
def test_do_not_track_wins_over_a_consent(variable: str, offline: Machine) -> None:
    switch: dict[str, Any] = {variable: "1"}
    offline.run("telemetry", "on")
    quiet = offline.run_on_terminal("convert", "dark", **switch)
    refused = offline.run("telemetry", "on", code=1, **switch)

    assert quiet == "converted, dark\n"
    assert f"{variable} is set" in refused
    assert f"{variable} is set" in offline.run("telemetry", "status", **switch)
    assert waiting(offline) == 0
    assert not offline.senders()


def test_a_run_that_was_not_started_records_nothing(
    offline: Machine, caplog: pytest.LogCaptureFixture
) -> None:
    """Where presence is hidden, the runs that record would be the only ones that send."""
    telemetry = Telemetry(offline.url, collections=offline.folder / "collections.toml")
    telemetry.record("theme", "dark")

    assert "call start() first" in caplog.text
    assert not offline.state.exists()


def test_what_no_sender_can_be_handed_is_refused() -> None:
    with pytest.raises(TypeError, match="transport: no variable hands it to a sender"):
        Telemetry(transport=None)


@pytest.mark.parametrize("name", ["URL", "JITTER"])
def test_a_setting_that_no_sender_could_use_is_named(name: str, offline: Machine) -> None:
    """A sender has no terminal to say it on; a run goes on."""
    wrong: dict[str, Any] = {f"VEILCOUNT_{name}": "example.org"}
    status = offline.run("telemetry", "status", **wrong)

    assert status.startswith("Statistics are off: ")
    assert "example.org" in status
    assert offline.run_on_terminal("convert", "dark", **wrong) == "converted, dark\n"


def test_in_development_a_run_sends_at_once_and_says_so() -> None:
    """From a throwaway state; what is sent is marked as a test."""
    with serving(counting) as server, machine(server.url) as place:
        run = place.start("convert", "dark", VEILCOUNT_DEVELOPMENT="1")
        output, log = run.communicate(timeout=60)

        assert output == "converted, dark\n"
        assert "reports: counted" in log
        assert len(server.seen) == 2
        assert all(request.batch().test for request in server.requests)
        assert not place.state.exists()


# -- the command waits for nobody ------------------------------------------------------------------


def test_a_hung_server_holds_up_the_sender_alone() -> None:
    """The command has ended while its report waits for a reply; it has touched no socket."""
    with serving(silent) as server, machine(server.url) as place:
        place.run("telemetry", "on")
        place.run("convert", "dark")
        assert wait_until(lambda: len(server.requests) == 2)

        assert len(place.senders()) == 1
        assert waiting(place) == 2


def test_a_command_that_sends_by_itself_is_found() -> None:
    with serving(silent) as server, machine(server.url) as place:
        place.run("telemetry", "on")
        place.run("convert", "dark", code=SOCKET_CODE, PLANT=BURST)


def test_a_terminal_that_is_closed_does_not_end_the_sender() -> None:
    with serving(silent) as server, machine(server.url) as place:
        place.run("telemetry", "on")
        place.run_on_terminal("convert", "dark")

        assert wait_until(lambda: len(server.requests) == 2)
        assert place.senders()


def test_a_sender_that_its_terminal_ends_is_found() -> None:
    with serving(silent) as server, machine(server.url) as place:
        place.run("telemetry", "on")
        place.run_on_terminal("convert", "dark", PLANT=ATTACHED)

        assert wait_until(lambda: not place.senders())
        assert waiting(place) == 2


def test_commands_at_once_have_one_sender() -> None:
    with serving(counting) as server, machine(server.url, jitter=8) as place:
        place.run("telemetry", "on")
        commands = [place.start("convert", "dark") for _ in range(4)]
        for command in commands:
            assert command.communicate(timeout=60) == ("converted, dark\n", "")

        assert wait_until(lambda: len(place.senders()) == 1)
        assert wait_until(lambda: len(server.seen) == 2)
        assert len(server.reports) == 2


def test_a_sender_that_is_starting_counts_as_running(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For a few seconds from its call; one that did not come is not waited for any longer."""
    monkeypatch.setattr(sender_lock, "STARTING", 600.0)
    lock = SenderLock(tmp_path)
    assert not lock.is_taken_soon()
    lock.call()
    with ThreadPoolExecutor() as pool, ExitStack() as stack:
        answer = pool.submit(lock.is_taken_soon)
        time.sleep(0.2)
        assert not answer.done()
        assert stack.enter_context(lock.acquire(patience=60))
        assert answer.result(timeout=60)
    long_ago = time.time() - 2 * sender_lock.STARTING
    os.utime(tmp_path / sender_lock.FILE, (long_ago, long_ago))
    assert not lock.is_taken_soon()


def test_on_windows_a_sender_has_neither_console_nor_group_of_the_command() -> None:
    """Simulated: [learn.microsoft.com, Process Creation Flags]."""
    assert detached.detached("win32") == {"creationflags": 0x00000008 | 0x00000200}
    assert detached.detached("darwin") == {"start_new_session": True}


def test_a_frozen_app_is_its_own_sender() -> None:
    """It has no `python -m`: the app is started again, and `start` delivers."""
    with serving(counting) as server, machine(server.url) as place:
        executable = place.folder / "convert"
        executable.write_text(f'#!/bin/sh\nexec {sys.executable} {APP} "$@"\n', encoding="utf-8")
        executable.chmod(0o755)
        place.run("telemetry", "on")
        place.run("convert", "dark", PLANT=FROZEN, EXECUTABLE=str(executable))

        assert wait_until(lambda: len(server.seen) == 2)


# -- faults of the machine -------------------------------------------------------------------------

#: root may write anywhere, unless its rights over files are taken away [capabilities(7)]
RIGHTS = "--bounding-set=-dac_override,-dac_read_search"
WITHOUT_RIGHTS = ("setpriv", RIGHTS, "--inh-caps=-all") if os.geteuid() == 0 else ()


@pytest.mark.parametrize("fault", ["read-only home", "no home", "no rights"])
def test_a_command_works_where_it_can_store_nothing(fault: str, offline: Machine) -> None:
    """Quietly; what cannot be decided says so, by its exit code too."""
    make_unusable(offline, fault)

    assert offline.run("convert", "dark", before=WITHOUT_RIGHTS) == "converted, dark\n"
    assert offline.run_on_terminal("convert", "dark", before=WITHOUT_RIGHTS) == "converted, dark\n"
    for word, code in {"on": 1, "off": 1, "forget": 1, "status": 0}.items():
        answer = offline.run("telemetry", word, before=WITHOUT_RIGHTS, code=code)
        assert answer.startswith("Statistics are off: "), word
    assert not offline.senders()


def make_unusable(place: Machine, fault: str) -> None:
    if fault == "no rights":
        place.state.mkdir(parents=True)
        place.state.chmod(0o000)
    place.home.chmod(0o555)
    if fault == "no home":
        place.home.rmdir()
        place.folder.chmod(0o555)


def test_a_command_works_on_a_full_disk() -> None:
    """What it had stored before leaves later."""
    with serving(counting) as server, machine(server.url, jitter=36_000) as place:
        place.run("telemetry", "on")
        full = ("sh", "-c", 'ulimit -f 0; exec "$@"', "sh")

        assert place.run("convert", "dark", before=full) == "converted, dark\n"
        assert "disk" in place.run("telemetry", "status", before=full)
        assert waiting(place) == 0
        place.run("convert", "dark")
        assert waiting(place) == 2


# -- off and forget --------------------------------------------------------------------------------


@pytest.mark.parametrize("word", ["off", "forget"])
def test_a_withdrawal_wipes_what_waits_and_ends_the_sender(word: str) -> None:
    with serving(counting) as server, machine(server.url, jitter=36_000) as place:
        place.run("telemetry", "on")
        place.run("convert", "dark")
        assert wait_until(lambda: len(place.senders()) == 1)
        assert waiting(place) == 2
        place.run("telemetry", word)

        assert wait_until(lambda: not place.senders())
        assert waiting(place) == 0
        assert not server.requests
        assert AGREED not in place.run("telemetry", "status")
        assert place.run("convert", "light") == "converted, light\n"
        assert waiting(place) == 0


def test_a_sender_that_goes_on_after_a_withdrawal_is_reported(offline: Machine) -> None:
    """It is one that has the lock; this one does not read the decision."""
    offline.run("telemetry", "on")
    with SenderLock(offline.state).acquire() as is_ours:
        answer = offline.run("telemetry", "off", code=1)

    assert is_ours
    assert "has not ended yet" in answer
    assert offline.run("telemetry", "off").count("\n") == 1
