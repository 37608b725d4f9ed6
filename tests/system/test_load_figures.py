"""What a load test's verdict rests on: its logs of requests, memory and CPU as measured, and
real devices alongside the load, whose reports and behaviour are judged.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from loadtests.device_log import Attempt, DeviceLog, FinalState, broken, merge_device_log
from loadtests.ipc import REQUEST_LOG, RequestLog, load, load_request_logs, save
from loadtests.population import draw
from loadtests.questions import questions
from loadtests.resource_usage import Meter, Sample
from loadtests.server_verdicts import ServerVerdicts


def test_the_logs_of_all_generators_come_back_as_one(tmp_path: Path) -> None:
    logs = (
        RequestLog([0], [b"x"], [0.1], 1.0, 0.3, [200], [7.0]),
        RequestLog([1, 1], [b"", b"yz"], [0.2, 0.3], 2.0, 0.4, [400, 200], [6.0, 8.0]),
    )
    for generator, log in enumerate(logs):
        save(tmp_path, f"{REQUEST_LOG}{generator}", log)
    request_log = load_request_logs(tmp_path)

    assert list(request_log.bodies) == [1, 0, 1]
    assert list(request_log.replies) == [b"", b"x", b"yz"]
    assert request_log.answered == [True, True, True]
    assert (request_log.begun, request_log.lasted) == (6.0, 2.0)
    assert request_log.cpu == pytest.approx(0.7)


def test_growing_memory_is_distinguished_from_memory_taken_once() -> None:
    meter = Meter(list)
    meter.samples += [Sample(float(at), 100 + 900 * (at > 1)) for at in range(100)]
    flat = meter.risen
    meter.samples[:] = [Sample(float(at), 1_000 + 10 * at) for at in range(100)]

    assert flat == pytest.approx(0.0, abs=1e-6)
    assert meter.growth == pytest.approx(10.0)
    assert meter.risen == pytest.approx(740.0)


def test_what_a_killed_process_computed_still_counts() -> None:
    busy = subprocess.Popen(["sh", "-c", "while :; do :; done"])
    meter = Meter(lambda: [busy.pid])
    meter.look()
    while meter.computed < 0.05:
        meter.look()
    os.kill(busy.pid, signal.SIGKILL)
    busy.wait()
    before = meter.computed
    meter.look()

    assert meter.computed == before > 0


# -- real devices ----------------------------------------------------------------------------------

NOW = datetime(2026, 12, 3, 12, tzinfo=UTC)
QUESTIONS = questions(NOW.date())
THEMES = draw({"theme": QUESTIONS["theme"]}, NOW, devices=2, seed=1)
BODIES = [queued_report.body for queued_report in THEMES]
VAIN = Attempt(0, 10.0, 0.5, BODIES[0], (), delay=2.0, why="503")
DONE = Attempt(0, 12.5, 0.1, BODIES[0], ("counted",))
OTHER = Attempt(1, 11.0, 0.1, BODIES[1], ("duplicate",))


FINAL_STATES = [FinalState(number, {"theme": 7}, 1, True, False, {}) for number in (0, 1)]


def device_log(attempts: Sequence[Attempt], first: FinalState = FINAL_STATES[0]) -> DeviceLog:
    return DeviceLog(list(attempts), [first, FINAL_STATES[1]])


EARLY = "1 times a real device's row came back before the requested delay"
LOST = {"evicted (theme)": 3}


@pytest.mark.parametrize(
    ("attempts", "first", "problems"),
    [
        ([VAIN, DONE, OTHER], FINAL_STATES[0], []),
        ([VAIN, replace(DONE, at=12.4), OTHER], FINAL_STATES[0], [EARLY]),
        ([VAIN, replace(DONE, at=VAIN.at + VAIN.took / 2), OTHER], FINAL_STATES[0], []),
        ([VAIN, replace(DONE, at=10.6), OTHER], replace(FINAL_STATES[0], flushed=True), []),
        ([DONE], FINAL_STATES[0], ["real devices drew 2 answers, and 1 were acknowledged"]),
        (
            [DONE, OTHER],
            replace(FINAL_STATES[0], left=False),
            ["1 real devices still hold answers"],
        ),
        (
            [DONE, OTHER],
            replace(FINAL_STATES[0], losses=LOST),
            ["real devices gave up 3 answers: evicted (theme)"],
        ),
    ],
)
def test_only_devices_that_break_a_rule_fail_the_run(
    attempts: Sequence[Attempt], first: FinalState, problems: list[str]
) -> None:
    assert list(broken(device_log(attempts, first))) == problems


def test_their_reports_are_judged_with_the_others(tmp_path: Path) -> None:
    """Each report by itself: what was sent in one body may come again in several."""
    save(tmp_path, "log", device_log([VAIN, DONE, OTHER]))
    verdicts = merge_device_log(THEMES[:0], ServerVerdicts([]), load(tmp_path, "log"), QUESTIONS)

    assert [(each.reports, each.held) for each in verdicts.queued_reports] == [
        (THEMES[0].reports, (7,)),
        (THEMES[1].reports, (7,)),
    ]
    assert verdicts.silences == {0: 1}
    assert verdicts.open == []
    assert list(verdicts.failures()) == ["1 reports were acknowledged as duplicates of nothing"]
