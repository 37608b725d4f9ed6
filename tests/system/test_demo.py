"""`veilcount demo`: what it tells is so, and nothing is left of it."""

from __future__ import annotations

import json
import logging
import os
import re
import signal
import socket
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import requests

from tests.redis_server import RedisServer
from tests.system.server import HOST, free_port, listens
from veilcount_aggregator import structured_logging
from veilcount_aggregator.cli.main import run
from veilcount_aggregator.demo.campaign import FIRST_TAP, SCREENS, WALK_MINUTES, Campaign
from veilcount_aggregator.demo.clock import DemoClock
from veilcount_aggregator.demo.deployment import deploy, memory_folder
from veilcount_aggregator.demo.run import DemoResult, DemoRun
from veilcount_aggregator.queries import EstimateQuery, estimate
from veilcount_aggregator.store import open_store
from veilcount_shared.verdict import Verdict

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
LEVEL = 1 - 1e-6  # of all values of a question at once
SMALL = ("--devices", "1000", "--clients", "6", "--seed", "3")
SECONDS = 60


@pytest.fixture(autouse=True)
def log_as_before() -> Iterator[None]:
    """A command that is run in this process writes its log to a stream that is gone after it."""
    log = logging.getLogger(structured_logging.NAME)
    kept = log.handlers[:], log.propagate, log.level
    yield
    log.handlers[:], log.propagate = kept[0], kept[1]
    log.setLevel(kept[2])


@pytest.fixture(scope="module")
def ending(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DemoResult]:
    """A story that has just ended, its aggregator still open."""
    campaign = Campaign(NOW)
    url = f"sqlite:///{tmp_path_factory.mktemp('demo')}/store.db?durability=relaxed"
    with deploy(campaign, DemoClock(campaign.begins), clients=15, store=url) as place:
        story = DemoRun.prepare(campaign, place, devices=1_500, clients=15, seed=2)
        yield story.play(lambda *_: None)


LOCAL = sorted(name for name, each in Campaign(NOW).collections.items() if each.epsilon)
OF_VALUES = [name for name in LOCAL if name != WALK_MINUTES]


def shares(ending: DemoResult, name: str, **asked: Any) -> tuple[np.ndarray[Any, Any], ...]:
    """Return both ends of the interval of every value."""
    size = ending.series(name).collection.domain.size
    question = EstimateQuery(level=LEVEL, simultaneous=True, size=size, **asked)
    (told,) = estimate(ending.snapshot, name, question).series[0].time_ranges
    return np.array([row.low for row in told.values]), np.array([row.high for row in told.values])


def test_what_is_sent_is_counted_once_and_nothing_is_refused(ending: DemoResult) -> None:
    sent = ending.real + ending.simulated
    names = ending.story.campaign.collections

    assert set(sent) == {Verdict.COUNTED}
    assert sent.total() == sum(ending.counted(name) for name in names)
    assert all(ending.counted(name) == len(ending.truth(name)) for name in names)
    assert ending.real.total() > 100


@pytest.mark.parametrize("name", OF_VALUES)
def test_the_truth_lies_in_the_band_of_all_values(name: str, ending: DemoResult) -> None:
    """Each band misses once in a million runs."""
    low, high = shares(ending, name)
    values = ending.truth(name).values
    truth = np.bincount(values, minlength=len(low)) / len(values)

    assert ((low <= truth) & (truth <= high)).all()


def test_the_truth_of_the_other_home_screen_lies_outside(ending: DemoResult) -> None:
    taps = ending.truth(FIRST_TAP)
    for cell, screen in enumerate(SCREENS):
        low, high = shares(ending, FIRST_TAP, segments=(("home", screen),))
        shown, other = (
            np.bincount(taps.values[taps.segments == each], minlength=6)
            / (taps.segments == each).sum()
            for each in (cell, 1 - cell)
        )

        assert ((low <= shown) & (shown <= high)).all()
        assert not ((low <= other) & (other <= high)).all()


def test_the_mean_of_a_number_lies_in_its_interval(ending: DemoResult) -> None:
    """It misses once in a million runs; the mean of hikes alone is far outside."""
    told = (
        estimate(ending.snapshot, WALK_MINUTES, EstimateQuery(level=LEVEL)).series[0].time_ranges[0]
    )
    truth = ending.truth(WALK_MINUTES).values

    assert told.n == len(truth)
    assert told.mean is not None
    assert told.mean.low <= truth.mean() <= told.mean.high
    assert not told.mean.low <= truth[truth > 150].mean() <= told.mean.high


@pytest.mark.parametrize("name", ["dark_map", "first_tap", "way_there"])
def test_the_histogram_of_spent_slots_is_what_people_did(name: str, ending: DemoResult) -> None:
    answered = Counter(ending.truth(name).people.tolist())
    did = Counter(answered.values())
    (spread,) = ending.snapshot.store.spend_histograms(ending.series(name)).values()

    assert {slots: number for slots, number in enumerate(spread.tolist(), 1) if number} == did


def test_every_period_holds_what_was_said_in_it(ending: DemoResult) -> None:
    for name in ending.story.campaign.collections:
        truth = ending.truth(name)
        held: Counter[tuple[int, int]] = Counter()
        for cell, number in ending.snapshot.store.report_counts(ending.series(name)).items():
            held[cell.period, cell.segment] += number

        assert held == Counter(zip(truth.periods.tolist(), truth.segments.tolist(), strict=True))


def test_the_release_is_of_a_closed_month_and_near_the_truth(ending: DemoResult) -> None:
    """Noise of scale 2 is beyond 60 once in 1e13 times."""
    release = ending.released.release
    told = ending.truth("way_there_told")
    month = told.values[told.periods == release.first_period]

    assert ending.released.charged
    assert release.first_period == release.last_period
    assert release.n == len(month)
    assert (abs(np.bincount(month, minlength=5) - np.array(release.values)) < 60).all()


def test_memory_is_used_where_there_is_room_and_nothing_else_is_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TMPDIR", raising=False)

    assert memory_folder(0, tmp_path) == tmp_path
    assert memory_folder(1 << 30, tmp_path) is None
    assert memory_folder(0, tmp_path / "none") is None

    monkeypatch.setenv("TMPDIR", str(tmp_path))

    assert memory_folder(0, tmp_path) is None


# -- the command -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Played:
    """What came of a demo that was run as a command."""

    code: int
    out: str
    err: str
    left: list[str]  # in the folder of temporary files


def environ(folder: Path) -> dict[str, str]:
    """Return the variables of a user who wants to be left alone by apps."""
    kept = {name: v for name, v in os.environ.items() if not name.startswith("VEILCOUNT_")}
    path = os.pathsep.join(sys.path)
    return kept | {"TMPDIR": str(folder), "PYTHONPATH": path, "DO_NOT_TRACK": "1"}


@contextmanager
def started(folder: Path, *words: str) -> Iterator[subprocess.Popen[str]]:
    """Yield a demo that was just started; end it, whatever happens."""
    folder.mkdir()
    command = [sys.executable, "-m", "veilcount_aggregator", "demo", *words]
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environ(folder),
        text=True,
        start_new_session=True,
    ) as process:
        try:
            yield process
        finally:
            with suppress(ProcessLookupError):
                process.kill()


def ended(process: subprocess.Popen[str], folder: Path) -> Played:
    """Return what came of a demo, once it has ended by itself."""
    out, err = process.communicate(timeout=SECONDS)
    return Played(process.returncode, out, err, [each.name for each in folder.iterdir()])


def opened(link: str) -> requests.Response:
    """Follow a link that logs in, as its page does in a browser; return what opens."""
    page, _, secret = link.partition("#")
    with requests.Session() as session:
        session.trust_env = False
        entrance = session.get(page, timeout=10).text
        hidden = dict(re.findall(r'type="hidden" name="(\w+)"[^>]* value="([^"]*)"', entrance))
        return session.post(page, data=hidden | {"link": secret}, timeout=10)


def test_once_prints_one_document_and_leaves_nothing(tmp_path: Path) -> None:
    """Devices of a demo are nobody's: what is set against tracking does not silence them."""
    with started(tmp_path / "tmp", *SMALL, "--once", "--json", "--level", "0.999999") as process:
        played = ended(process, tmp_path / "tmp")
    told = json.loads(played.out)

    assert (played.code, played.err, played.left) == (0, "", [])
    assert told["crowd"]["sent_by_clients"]["counted"] > 30
    assert told["link"] is None
    assert {row["collection"] for row in told["rows"]} == set(LOCAL)
    assert all(row["local"]["low"] <= row["truth"] <= row["local"]["high"] for row in told["rows"])


def test_it_serves_until_it_is_ended_and_leaves_nothing(tmp_path: Path) -> None:
    with started(tmp_path / "tmp", *SMALL) as process:
        assert process.stdout is not None
        said = iter(process.stdout.readline, "")
        link = next(found[0] for line in said if (found := re.search(r"http://\S+#\S+", line)))
        page = opened(link)
        process.send_signal(signal.SIGINT)
        played = ended(process, tmp_path / "tmp")

    assert page.status_code == 200
    assert "Is the map dark?" in page.text
    assert (played.code, played.left) == (0, [])
    assert not listens(int(link.split(":")[2].split("/")[0]))


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM], ids=lambda how: how.name)
def test_ended_in_the_middle_it_leaves_nothing(how: signal.Signals, tmp_path: Path) -> None:
    with started(tmp_path / "tmp", *SMALL) as process:
        assert process.stderr is not None
        month = process.stderr.readline()
        process.send_signal(how)
        played = ended(process, tmp_path / "tmp")

    assert "day 1 of" in month
    assert (played.code, played.out, played.left) == (130, "", [])
    assert played.err.splitlines()[-1] == "veilcount: stopped"


def test_a_redis_of_ones_own_keeps_it_and_is_not_used_twice(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    server = RedisServer(tmp_path)
    try:
        words = ["demo", *SMALL, "--store", server.url]
        code = run([*words, "--once", "--json"])
        told = json.loads(capfd.readouterr().out)
        again = run([*words, "--once"])
        store = open_store(server.url)
        kept = sum(
            number for note, number in store.service_counts().items() if note.what == "verdict"
        )
        generation = store.generation()
        store.close()
    finally:
        server.kill()

    assert (code, again) == (0, 2)
    assert "the store is not empty: give a new one" in capfd.readouterr().err
    assert told["crowd"]["sent_by_clients"].keys() == {"counted"}
    assert generation > 0
    assert kept == 0  # nothing was refused


def test_a_redis_that_is_not_there_is_said_at_once(capfd: pytest.CaptureFixture[str]) -> None:
    code = run(["demo", "--once", "--store", f"redis://{HOST}:{free_port()}/0"])

    assert code == 3
    assert "not answer" in capfd.readouterr().err


def test_a_port_that_is_taken_is_said_at_once(capfd: pytest.CaptureFixture[str]) -> None:
    with socket.create_server((HOST, 0)) as taken:
        code = run(["demo", "--once", "--port", str(taken.getsockname()[1])])

    assert code == 2
    assert "give another" in capfd.readouterr().err


def test_more_clients_than_devices_are_refused(capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["demo", "--devices", "1000", "--clients", "1001"]) == 2
    assert "at most as many as --devices" in capfd.readouterr().err
