"""What a network sees of a command with the kit is what it sees of an app that runs all day."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from veilcount_client.integrations.cli_kit import sender
from veilcount_client.testing import SeededRandomSource

from ..device_fixtures import DAY, HOUR, Device, at, file, set_clock

QUESTIONS = {
    f"question_{number}": {"values": ["x", "y"], "unit": "day", "per_day": 1} for number in range(4)
}
COLLECTIONS = file(**QUESTIONS)
DAYS = 6
#: of each day and question, when a command records it: two of them within seconds
RUNS = sorted(
    (at(day, hour, seconds), f"question_{number}")
    for day in range(DAYS)
    for number, (hour, seconds) in enumerate([(9, 0), (9, 20), (9.6, 0), (21, 0)])
)
Use = Callable[[Device], None]


def arrivals(folder: Path, use: Use) -> list[tuple[float, str]]:
    """Return when which question's reports arrive, of one person with the same randomness."""
    device = Device(
        folder, COLLECTIONS, at(0, 8), person="ann", randomness=SeededRandomSource(3)
    )  # fmt: skip
    use(device)
    names = {collection.fingerprint: name for name, collection in COLLECTIONS.items()}
    return [
        (round(arrival.instant), names[report.fingerprint])
        for arrival in device.wire.arrivals
        for report in arrival.batch.reports
    ]


def all_day(device: Device) -> None:
    for instant, name in RUNS:
        device.record_at(instant, name, value="x")
    device.run_until(at(DAYS + 1))
    device.stop()


def commands(device: Device, *, seconds: float | None = None) -> None:
    """Run a command at each instant; its sender stays for the hour, or for so many seconds."""
    device.stop()
    ends = 0.0
    for (instant, name), (following, _) in zip(RUNS, [*RUNS[1:], (at(DAYS + 1), "")], strict=True):
        if not device.runs:
            device.start_at(instant)
        device.record(name, value="x")
        ends = instant + (sender.MARGIN + HOUR if seconds is None else seconds)
        stay(device, min(ends, following))
        if device.runs and device.clock.now() >= ends:
            device.stop()
        set_clock(device.clock, max(following, device.clock.now()))
    if device.runs:
        device.stop()


def stay(device: Device, until: float) -> None:
    """Have the sender stay while it would, by its own judgement each time that it may send."""
    while device.runs and device.clock.now() < until:
        if not sender.may_send(device.client):
            device.stop()
            return
        device.run_until(min(until, max(device.due() or until, device.clock.now() + 1)))


def test_a_report_leaves_at_the_very_instant_as_of_an_app_that_runs_all_day(tmp_path: Path) -> None:
    """The sender is there at each drawn instant, and nothing is drawn again."""
    usual = arrivals(tmp_path / "all day", all_day)

    assert len(usual) == len(RUNS)
    assert arrivals(tmp_path / "commands", commands) == usual


def test_a_sender_that_leaves_early_is_found(tmp_path: Path) -> None:
    """What it leaves is sent within the hour of the next start: at another instant, together."""
    usual = arrivals(tmp_path / "all day", all_day)

    assert arrivals(tmp_path / "brief", partial(commands, seconds=HOUR / 4)) != usual


def test_a_sender_is_needed_only_while_something_may_leave(tmp_path: Path) -> None:
    """A question of each day is answered once: later runs on that day find nothing to send."""
    device = Device(tmp_path, COLLECTIONS, at(0, 8), person="ann")

    assert not sender.may_send(device.client)
    device.record("question_0", value="x")
    assert sender.may_send(device.client)
    device.run_for(HOUR)
    device.record("question_0", value="x")
    assert not sender.may_send(device.client)
    device.stop()


def test_where_presence_is_hidden_every_run_has_a_sender(tmp_path: Path) -> None:
    """Whoever recorded nothing may have an absence to send, and does not wait less for it."""
    hidden = file(it={"presence": "hidden", "unit": "day"})
    for folder, records in (("active", True), ("idle", False)):
        device = Device(tmp_path / folder, hidden, at(0, 8), person="ann")
        for _ in range(3):
            assert sender.may_send(device.client)
            if records:
                device.record("it")
            device.run_for(DAY / 4)
        assert sender.may_send(device.client)
        device.stop()
