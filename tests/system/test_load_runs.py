"""Whole load tests, as `./dev load` starts them: shapes, faults, attacks, several generators. And
servers with a defect planted in them, each of which a run must notice.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest
import requests

from .server import HOST, free_port

ROOT = Path(__file__).parents[2]
SOUND = "sound: every figure is what the devices sent"

pytestmark = [pytest.mark.full, pytest.mark.timeout(400)]


def run_load_test(*flags: str, planted: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run it; `planted` is a folder of code that a server imports before its own."""
    path = os.pathsep.join([str(planted), os.environ.get("PYTHONPATH", "")])
    return subprocess.run(
        [sys.executable, str(ROOT / "loadtests" / "run.py"), *flags],
        cwd=ROOT,
        env=os.environ | ({"PYTHONPATH": path} if planted else {}),
        capture_output=True,
        text=True,
        check=False,
    )


def sound(*flags: str) -> str:
    ended = run_load_test(*flags)

    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert SOUND in ended.stdout
    return ended.stdout


@pytest.mark.parametrize("store", ["sqlite", "redis", "redis-cluster"])
def test_attackers_come_to_nothing(store: str) -> None:
    result = sound("--shape", "hostile", "--store", store, "--devices-real", "3", "--seconds", "5")

    assert "full" in result
    assert "bodies refused" in result


@pytest.mark.parametrize(
    ("store", "flags"),
    [
        ("sqlite", ["--kill", "worker", "--workers", "2"]),
        ("sqlite", ["--kill", "server"]),
        ("sqlite", ["--fault", "restart"]),
        ("sqlite", ["--fault", "blackhole"]),
        ("sqlite", ["--fault", "lost-replies", "--devices-real", "4"]),
        ("sqlite", ["--fault", "slow-disk"]),
        ("redis", ["--kill", "redis", "--workers", "2"]),
        ("redis", ["--kill", "server"]),
        ("redis", ["--fault", "slow-disk"]),
        ("redis-cluster", ["--kill", "redis"]),
        ("redis-cluster", ["--kill", "worker", "--workers", "2"]),
        ("redis-cluster", ["--fault", "hung-master", "--seconds", "12"]),
        ("redis", ["--fault", "hung-disk"]),
        ("sqlite", ["--fault", "hung-disk"]),
        ("redis", ["--fault", "clock-jump"]),
        ("sqlite", ["--fault", "analysts"]),
        ("redis", ["--fault", "analysts"]),
        ("redis-cluster", ["--fault", "failover", "--replicas", "1", "--seconds", "12"]),
    ],
)
def test_nothing_acknowledged_is_lost_in_a_fault(store: str, flags: list[str]) -> None:
    result = sound("--store", store, "--seconds", "4", *flags)

    assert "backlog gone after" in result


@pytest.mark.parametrize(
    ("flags", "shown"),
    [
        (["--shape", "herd", "--fault", "away", "--devices-real", "6"], "all real devices done"),
        (["--shape", "herd", "--fault", "blackhole", "--devices-real", "6"], "real devices done"),
        (["--shape", "ramp"], "knee: "),
        (["--shape", "spike"], "\nx10 "),
        (["--shape", "soak", "--seconds", "20", "--devices-real", "3"], "slope, MB an hour"),
        (["--generators", "2", "--devices", "200"], "counted                      7,600"),
    ],
)
def test_each_shape_is_sound_and_shows_its_figure(flags: list[str], shown: str) -> None:
    assert shown in sound("--seconds", "5", *flags)


@pytest.mark.timeout(4500)
def test_an_hour_takes_no_memory() -> None:
    """Flat: less than 16 MB from the second quarter of the hour to its end."""
    sound("--shape", "soak", "--seconds", "3600", "--growth", "16", "--devices-real", "3")


@pytest.mark.parametrize(
    ("flags", "failure"),
    [
        (["--growth", "-1000"], "-1000 MB were allowed"),
        (["--fault", "away", "--errors", "0.01", "--seconds", "4"], "0.01 % were allowed"),
        (["--store", "redis", "--p99", "0.001"], "0.001 ms were promised"),
    ],
)
def test_a_promise_that_is_not_kept_is_in_the_exit_code(flags: list[str], failure: str) -> None:
    ended = run_load_test("--devices", "60", "--seconds", "2", *flags)

    assert ended.returncode == 1, ended.stdout + ended.stderr
    assert failure in ended.stdout


def test_a_run_can_be_watched_on_locusts_page() -> None:
    port, seen = free_port(), threading.Event()
    with ThreadPoolExecutor() as runs:
        run = runs.submit(sound, "--ui", str(port), "--seconds", "5")
        while not run.done() and not seen.wait(0.1):
            with suppress(requests.RequestException):
                page = requests.get(f"http://{HOST}:{port}/stats/requests", timeout=5)
                if any(each["name"] == "/v1/reports" for each in page.json()["stats"]):
                    seen.set()

    assert seen.is_set(), run.result()


#: code that every Python of a run begins with; what it changes is at work in the server alone.
#: The server does again alone what fails in a group, and answers: so a plant notes that it was done
PLANTED = """
from dataclasses import replace
from itertools import count
from pathlib import Path

import numpy as np
from veilcount_aggregator.intake.pipeline import IntakePipeline
from veilcount_aggregator.store import COUNTED

honest, requests = IntakePipeline.process, count(1)

def only(group, reports):
    columns = [(each, reports[each.places]) for each in group.series_columns]
    return replace(group, series_columns=[
        each.select(chosen) for each, chosen in columns if chosen.any()
    ])

def flipped(group, field, bits):
    return replace(group, series_columns=[
        replace(each, **{field: getattr(each, field) ^ np.uint8(bits(each))})
        for each in (columns.select(slice(None)) for columns in group.series_columns)
    ])

def loses(process, group, due, reports):
    outcomes = process(only(group, ~reports))
    return [np.full_like(each, COUNTED) if lost else each for each, lost in zip(outcomes, due)]

def doubles(process, group, due, reports):
    process(flipped(only(group, reports), "pseudonyms", lambda each: 1))
    return process(group)

def moves(process, group, due, reports):
    moved = flipped(only(group, reports), "messages", lambda each: each.messages.shape[1] == 1)
    columns = [*only(group, ~reports).series_columns, *moved.series_columns]
    return process(replace(group, series_columns=columns))

def one(self, origin, group, others):
    def process(changed):
        return honest(self, [(origin, changed)], *others)[0]

    due = np.array([next(requests) % 50 == 0 for _ in group.starts[1:]])
    if not due.any():
        return process(group)
    outcomes = DEFECT(process, group, due, np.repeat(due, np.diff(group.starts)))
    Path(__file__).with_name("done").touch()
    return outcomes

IntakePipeline.process = lambda self, groups, *others: [
    one(self, origin, group, others) for origin, group in groups
]
"""
DEFECTS = {
    "loses": ": lost ",
    "doubles": " reports more than the ",
    "moves": "the counters are off those of the acknowledged messages",
}


@pytest.mark.parametrize("defect", DEFECTS)
def test_a_server_with_a_defect_fails_the_run(defect: str, tmp_path: Path) -> None:
    """It loses, doubles or moves the reports of one request in fifty."""
    (tmp_path / "sitecustomize.py").write_text(PLANTED.replace("DEFECT", defect), encoding="utf-8")
    ended = run_load_test("--devices", "200", "--seconds", "5", planted=tmp_path)

    assert (tmp_path / "done").exists(), f"the defect was not at work: {ended.stdout}{ended.stderr}"
    assert ended.returncode == 1, ended.stdout + ended.stderr
    assert DEFECTS[defect] in ended.stdout
