"""`veilcount demo`: its figures are true, and it leaves nothing behind."""

from __future__ import annotations

import json
import logging
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import requests

from veilcount_aggregator.operate.cli.main import run
from veilcount_aggregator.operate.demo import summary
from veilcount_aggregator.operate.demo.campaign import SCREENS, Campaign, Question
from veilcount_aggregator.operate.demo.deployment import DemoClock, deploy, memory_folder
from veilcount_aggregator.operate.demo.relayed_question import PartyLogs
from veilcount_aggregator.operate.demo.run import DemoResult, DemoRun
from veilcount_aggregator.queries import EstimateQuery, estimate
from veilcount_aggregator.store import VERDICT, open_store
from veilcount_analysis.series.series import Series
from veilcount_serving import structured_logging
from veilcount_shared.verdict import Verdict

from ..redis_server import RedisServer
from .server import HOST, free_port, listens

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
LEVEL = 1 - 1e-6  # of all values of a question at once
SMALL = ("--devices", "1000", "--clients", "6", "--seed", "3")
SECONDS = 60


@pytest.fixture(autouse=True)
def log_as_before() -> Iterator[None]:
    """Restore the log: a command run in this process writes to a stream that is closed after it."""
    log = logging.getLogger(structured_logging.NAME)
    kept = log.handlers[:], log.propagate, log.level
    yield
    log.handlers[:], log.propagate = kept[0], kept[1]
    log.setLevel(kept[2])


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DemoResult]:
    """A replay that has just ended, its aggregator still open."""
    campaign = Campaign(NOW)
    url = f"sqlite:///{tmp_path_factory.mktemp('demo')}/store.db?durability=relaxed"
    with deploy(campaign, DemoClock(campaign.begins), clients=10, store=url) as place:
        demo = DemoRun.prepare(campaign, place, devices=1_500, clients=10, seed=2)
        yield demo.play(lambda *_: None)


LOCAL = sorted(name for name, each in Campaign(NOW).collections.items() if each.epsilon)
BETA = 10  # devices over a relay
OF_VALUES = [name for name in LOCAL if name != Question.WALK_MINUTES]


def series(result: DemoResult, name: str) -> Series:
    return result.snapshot.named(name)[0]


def counted(result: DemoResult, name: str) -> int:
    """Return how many answers the store holds of a collection."""
    return result.snapshot.reports(series(result, name))


def shares(
    result: DemoResult, name: str, level: float = LEVEL, **query: Any
) -> tuple[np.ndarray[Any, Any], ...]:
    """Return both ends of the interval of every value; together they hold at the level."""
    size = series(result, name).collection.domain.size
    parsed = EstimateQuery(level=1 - (1 - level) / size, size=size, **query)
    (found,) = estimate(result.snapshot, name, parsed).series[0].ranges
    return tuple(np.array([row.interval for row in found.figures]).T)


def test_every_report_is_counted_once_in_the_period_of_its_answer(result: DemoResult) -> None:
    sent = result.real + result.simulated

    assert set(sent) == {Verdict.COUNTED}
    assert sent.total() == sum(counted(result, name) for name in result.run.campaign.collections)
    assert result.real.total() > 50  # some 120: how often they answer is drawn by each device
    for name in result.run.campaign.collections:
        truth = result.truth(name)
        reports: Counter[tuple[int, int]] = Counter()
        for cell, number in result.snapshot.store.report_counts(series(result, name)).items():
            reports[cell.period, cell.segment] += number

        assert reports == Counter(zip(truth.periods.tolist(), truth.segments.tolist(), strict=True))
        assert counted(result, name) == len(truth)


@pytest.mark.parametrize("name", OF_VALUES)
def test_the_truth_lies_in_the_band_of_all_values(name: str, result: DemoResult) -> None:
    """Each band misses once in a million runs."""
    low, high = shares(result, name)
    values = result.truth(name).values
    truth = np.bincount(values, minlength=len(low)) / len(values)

    assert ((low <= truth) & (truth <= high)).all()


def test_the_truth_of_the_other_home_screen_lies_outside(result: DemoResult) -> None:
    """Of a narrower band: what real clients draw differs in each run."""
    taps = result.truth(Question.FIRST_TAP)
    for cell, screen in enumerate(SCREENS):
        segments = (("home", screen),)
        low, high = shares(result, Question.FIRST_TAP, segments=segments)
        least, most = shares(result, Question.FIRST_TAP, level=0.9, segments=segments)
        shown, other = (
            np.bincount(taps.values[taps.segments == each], minlength=6)
            / (taps.segments == each).sum()
            for each in (cell, 1 - cell)
        )

        assert ((low <= shown) & (shown <= high)).all()
        assert not ((least <= other) & (other <= most)).all()


def test_the_mean_of_a_number_lies_in_its_interval(result: DemoResult) -> None:
    """It misses once in a million runs; the mean of hikes alone is far outside."""
    estimated = estimate(result.snapshot, Question.WALK_MINUTES, EstimateQuery(level=LEVEL))
    (found,) = estimated.series[0].ranges
    truth = result.truth(Question.WALK_MINUTES).values

    assert found.n == len(truth)
    low, high = found.figures[0].interval
    assert low <= truth.mean() <= high
    assert not low <= truth[truth > 150].mean() <= high


def test_the_histogram_of_spent_slots_is_the_true_one(result: DemoResult) -> None:
    for name in ("dark_map", "first_tap", "way_there"):
        answered = Counter(result.truth(name).people.tolist())
        (spread,) = result.snapshot.store.spend_histograms(series(result, name)).values()
        found = {slots: number for slots, number in enumerate(spread.tolist(), 1) if number}

        assert found == Counter(answered.values())


def test_the_release_is_of_a_closed_month_and_near_the_truth(result: DemoResult) -> None:
    """Noise of scale 2 exceeds 60 once in 1e13 times."""
    released, truth = result.released, result.truth("way_there_central")
    month = truth.values[truth.periods == result.run.released_period]
    figures = [row["figure"] for row in released["figures"]]

    assert (released["from"], released["to"]) == ("2026-09-01", "2026-09-30")
    assert (abs(np.bincount(month, minlength=5) - np.array(figures)) < 60).all()


def test_a_question_is_answered_over_a_relay_with_tokens(result: DemoResult) -> None:
    """Its estimate misses once in a million runs; no log has what would join it to another."""
    low, high = shares(result, Question.SHARED_POSITION)
    truth, logs = result.truth(Question.SHARED_POSITION), result.run.deployment.logs

    assert counted(result, Question.SHARED_POSITION) == len(truth) == BETA
    assert low[1] <= truth.values.mean() <= high[1]
    assert sorted(each.account for each in logs.issuer) == [f"account-{n}" for n in range(BETA)]
    assert (len(logs.relay), len(logs.aggregator)) == (BETA, BETA)
    assert len({(len(each.body), len(each.reply)) for each in logs.relay}) == 1
    assert logs.in_common() == 0


def test_what_two_logs_share_is_found(result: DemoResult) -> None:
    """A relay that is sent reports in clear, and an issuer that sees what it signs."""
    logs = result.run.deployment.logs
    report, exchange, signed = logs.aggregator[0], logs.relay[0], logs.issuer[0]
    in_clear = exchange._replace(body=b"report " + report.pseudonym)
    unblinded = signed._replace(signature=report.token)

    assert PartyLogs(relay=[in_clear], aggregator=logs.aggregator).in_common() == 1
    assert PartyLogs(issuer=[unblinded], aggregator=logs.aggregator).in_common() == 1


def test_a_folder_in_memory_is_used_if_large_enough_and_no_other_is_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TMPDIR", raising=False)

    assert memory_folder(0, tmp_path) == tmp_path
    assert memory_folder(1 << 30, tmp_path) is None
    assert memory_folder(0, tmp_path / "none") is None

    monkeypatch.setenv("TMPDIR", str(tmp_path))

    assert memory_folder(0, tmp_path) is None


# -- the command -----------------------------------------------------------------------------------


SERVE = [sys.executable, "-m", "veilcount_aggregator", "demo", *SMALL]


@contextmanager
def started(folder: Path) -> Iterator[subprocess.Popen[str]]:
    """Yield a demo that was just started by a user who opted out of tracking; end it."""
    folder.mkdir()
    kept = {name: v for name, v in os.environ.items() if not name.startswith("VEILCOUNT_")}
    path = os.pathsep.join(sys.path)
    environ = kept | {"TMPDIR": str(folder), "PYTHONPATH": path, "DO_NOT_TRACK": "1"}
    pipe = subprocess.PIPE
    with subprocess.Popen(
        SERVE, stdout=pipe, stderr=pipe, env=environ, text=True, start_new_session=True
    ) as process:
        try:
            yield process
        finally:
            with suppress(ProcessLookupError):
                process.kill()


def opened(link: str) -> requests.Response:
    """Follow a link that logs in, as its page does in a browser; return what opens."""
    page, _, secret = link.partition("#")
    with requests.Session() as session:
        session.trust_env = False
        entrance = session.get(page, timeout=10).text
        hidden = dict(re.findall(r'type="hidden" name="(\w+)"[^>]* value="([^"]*)"', entrance))
        return session.post(page, data=hidden | {"link": secret}, timeout=10)


def test_it_serves_until_interrupted_and_leaves_nothing(tmp_path: Path) -> None:
    with started(tmp_path / "tmp") as process:
        assert process.stdout is not None
        lines = iter(process.stdout.readline, "")
        link = next(found[0] for line in lines if (found := re.search(r"http://\S+#\S+", line)))
        page = opened(link)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=SECONDS)

    assert page.status_code == 200
    assert "Is the map dark?" in page.text
    assert (process.returncode, list((tmp_path / "tmp").iterdir())) == (0, [])
    assert not listens(int(link.split(":")[2].split("/")[0]))


@pytest.mark.parametrize(
    "how",
    [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.full)],
    ids=lambda how: how.name,
)
def test_stopped_halfway_it_leaves_nothing(how: signal.Signals, tmp_path: Path) -> None:
    with started(tmp_path / "tmp") as process:
        assert process.stderr is not None
        month = process.stderr.readline()
        process.send_signal(how)
        out, err = process.communicate(timeout=SECONDS)

    assert "day 1 of" in month
    assert (process.returncode, out, list((tmp_path / "tmp").iterdir())) == (130, "", [])
    assert err.splitlines()[-1] == "veilcount: stopped"


def test_a_new_redis_keeps_the_reports_and_is_not_used_twice(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The devices belong to nobody: an opt-out of tracking does not silence them."""
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setenv("DO_NOT_TRACK", "1")
    server = RedisServer(tmp_path)
    words = ["demo", *SMALL, "--store", server.url, "--once"]
    try:
        code = run([*words, "--json", "--level", "0.999999"])
        printed = capfd.readouterr()
        again = run(words)
        with closing(open_store(server.url)) as store:
            rejected = [note for note in store.service_counts() if note.what == VERDICT]
            generation = store.generation()
    finally:
        server.kill()
    found = json.loads(printed.out)

    assert (code, again, printed.err, list(temporary.iterdir())) == (0, 2, "", [])
    assert "the store is not empty: give a new one" in capfd.readouterr().err
    assert generation > 0
    assert not rejected
    assert found["participation"]["sent_by_clients"].keys() == {"counted"}
    assert found["participation"]["sent_by_beta"] == found["relayed"]["parties"][0]["entries"] == 6
    assert found["relayed"]["in_common"] == 0
    assert found["participation"]["sent_by_clients"]["counted"] > 30
    assert found["link"] is None
    assert {row["collection"] for row in found["rows"]} == {*LOCAL, Question.SHARED_POSITION}
    assert all(row["low"] <= row["truth"] <= row["high"] for row in found["rows"])


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("--store", "redis://{host}:{free}/0"), 3, "not answer"),
        (("--port", "{taken}"), 2, "give another"),
        (("--devices", "1000", "--clients", "1001"), 2, "at most as many as --devices"),
    ],
)
def test_a_mistake_is_reported_at_once(
    words: tuple[str, ...], code: int, message: str, capfd: pytest.CaptureFixture[str]
) -> None:
    with socket.create_server((HOST, 0)) as taken:
        ports = {"host": HOST, "free": free_port(), "taken": taken.getsockname()[1]}

        assert run(["demo", "--once", *(each.format(**ports) for each in words)]) == code
    assert message in capfd.readouterr().err


# -- the shuffler ----------------------------------------------------------------------------------


def test_too_small_a_batch_is_not_handed_over(result: DemoResult) -> None:
    """Of ten clients, the fewest that the definition allows being a hundred."""
    found = summary.summary(result, seed=2, level=0.95)

    assert found["shuffled"] is None
    assert len(result.run.deployment.shuffler.logs.shuffler) > 5
    assert Question.GUIDE not in result.names


def test_a_batch_of_real_clients_comes_through_the_shuffler(tmp_path: Path) -> None:
    campaign = Campaign(NOW)
    with deploy(campaign, DemoClock(campaign.begins), clients=130) as place:
        demo = DemoRun.prepare(campaign, place, devices=1_000, clients=130, seed=5)
        played = demo.play(lambda *_: None)
        found = summary.summary(played, seed=5, level=LEVEL)["shuffled"]
        low, high = shares(played, Question.GUIDE)
        values = played.truth(Question.GUIDE).values
        consented = int(played.run.users.consents[played.run.real].sum())

    assert [party["entries"] for party in found["parties"]] == [consented, consented + 142]
    assert found["in_place"] < 12, "one on the average"
    truth = np.bincount(values, minlength=len(low)) / len(values)
    assert ((low <= truth) & (truth <= high)).all()
    assert not ((low <= 0.6) & (high >= 0.6)).all(), "as it would be if nothing were learnt"
