"""A load through a shuffler: a known truth, a kill -9 in the middle, and the figures at the end.

The shuffler is the real server with crowds that leave after seconds; every fifth envelope is sent
twice, as after a lost reply. The run fails unless each was held, counted once, and the truth lies
in the intervals of all values together.
"""

from __future__ import annotations

import os
import pickle
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from signal import SIGKILL
from typing import Any

import requests
from tests.processes import family
from tests.system.server import HOST, free_port, wait_until

from veilcount_aggregator.records.api_keys import Role, create_key
from veilcount_aggregator.server.development_shuffler import DevelopmentShuffler
from veilcount_aggregator.store import open_store
from veilcount_serving.listen_address import ListenAddress
from veilcount_shared import Collection, SystemRandomSource, load_collections
from veilcount_shared.oblivious_http.key_file import decode_key_file
from veilcount_shared.schedule import period_at
from veilcount_shared.shuffling.crowd import Crowd
from veilcount_shared.shuffling.envelope import Envelope
from veilcount_shared.shuffling.plain_report import PlainReport
from veilcount_shared.shuffling.sealed_report import seal_report

LOCUSTFILE = Path(__file__).with_name("envelope_devices.py")
DEFINITIONS = """
app = "acme-editor"

[theme]
question = "Which theme is active?"
values = ["light", "dark", "system"]
model = "shuffled"
epsilon = 4
unit = "month"
batch = {{epsilon = 1, delta = 1e-6, covers = 142}}
from = {first}
until = {last}
"""
SHARES = {"light": 0.5, "dark": 0.3, "system": 0.15, None: 0.05}  # None: nothing was recorded
ABSENT = "absent"
LEVEL = 1 - 1e-6
LEAST = 1_000  # reports of a batch
TWICE = 5  # one in so many is sent twice
MOST_TIMES = 3  # the seconds of a run, until everything is held
AFTER_SECONDS = 20  # and from then until the crowd leaves
MOST_SECONDS = 300.0


@dataclass(frozen=True, slots=True)
class EnvelopeRun:
    """The parameters of a run."""

    devices: int
    users: int
    seconds: int
    seed: int
    kill: bool


def run_through_shuffler(plan: EnvelopeRun, folder: Path) -> list[str]:
    """Run, print what came of it; return what was wrong."""
    place = _Place.make(folder, plan)
    generator = random.Random(plan.seed)
    truth = generator.choices([*SHARES], [*SHARES.values()], k=plan.devices)
    envelopes = list(place.envelopes(truth))
    doubled = envelopes + envelopes[::TWICE]
    generator.shuffle(doubled)
    (folder / "envelopes").write_bytes(pickle.dumps(doubled))
    with place.aggregator(), place.shuffler() as processes:
        sending = place.send(plan)
        if plan.kill:
            time.sleep(plan.seconds / 2)
            processes.restart()
        if sending.wait():
            return [(folder / "locust.log").read_text(encoding="utf-8")]
        answers, milliseconds, left = pickle.loads((folder / "result").read_bytes())  # noqa: S301
        result = place.result()
    print(f"{len(doubled):,} sends of {plan.devices:,} envelopes: {answers}")
    print(f"median {milliseconds[len(milliseconds) // 2]:.1f} ms, killed: {plan.kill}")
    return list(problems(result, Counter(truth), left))


def problems(result: dict[str, Any], truth: Counter[str | None], left: int) -> Iterator[str]:
    """Print the figures; yield what is wrong with them."""
    if left:
        yield f"{left} envelopes were never held"
    (found,) = result["series"][0]["ranges"]
    if found["n"] != truth.total():
        yield f"n is {found['n']:,}, and {truth.total():,} were held"
    for row in found["figures"]:
        share = truth[None if row["of"] == ABSENT else row["of"]] / truth.total()
        interval = f"{row['low']:.4f} to {row['high']:.4f}"
        print(f"{row['of']}: {row['figure']:.4f} ({interval}), in truth {share:.4f}")
        if not row["low"] <= share <= row["high"]:
            yield f"{row['of']}: {share:.4f} is not in {interval}"


class _Processes:
    """A shuffler, killed and started again."""

    def __init__(self, command: Sequence[str]) -> None:
        self._command = command
        self._process = subprocess.Popen(command)

    def restart(self) -> None:
        self.kill()
        self._process = subprocess.Popen(self._command)

    def kill(self) -> None:
        for pid in family(self._process.pid):
            with suppress(ProcessLookupError):
                os.kill(pid, SIGKILL)
        self._process.wait()


@dataclass(frozen=True, slots=True)
class _Place:
    """The parties of a run, at their addresses."""

    folder: Path
    definitions: Path
    store_url: str
    url: str
    shuffled: DevelopmentShuffler
    analyst: str

    @classmethod
    def make(cls, folder: Path, plan: EnvelopeRun) -> _Place:
        now = datetime.now(UTC)
        first = now.date().replace(day=1)
        last = (first + timedelta(days=62)).replace(day=1)
        definitions = folder / "collections.toml"
        definitions.write_text(DEFINITIONS.format(first=first, last=last), encoding="utf-8")
        url, store_url = f"http://{HOST}:{free_port()}", f"sqlite:///{folder}/store.db"
        seconds = MOST_TIMES * plan.seconds + AFTER_SECONDS
        shuffled = DevelopmentShuffler(folder, ListenAddress(HOST, free_port()), seconds)
        shuffled.make(store_url, url, load_collections(definitions), now)
        with closing(open_store(store_url)) as store:
            _, analyst = create_key(store, Role.ANALYST, "load", now)
        return cls(folder, definitions, store_url, url, shuffled, analyst)

    @property
    def collection(self) -> Collection:
        return load_collections(self.definitions)["theme"]

    def envelopes(self, answers: Sequence[str | None]) -> Iterator[bytes]:
        """Seal what devices send, as they do."""
        collection, randomness = self.collection, SystemRandomSource()
        (key,) = decode_key_file(self.shuffled.keys.read_bytes())
        period = period_at(collection, datetime.now(UTC)) or 0
        crowd = Crowd.of_period(collection, period, key.encoded, key.config).crowd_id
        for answer in answers:
            absent = answer is None
            drawn = (
                collection.randomize_absent(randomness)
                if absent
                else collection.message(answer, randomness)
            )
            plain = PlainReport(collection.pack(drawn)).encode()
            yield Envelope(crowd, period, seal_report(key.config, crowd, period, plain)).encode()

    @contextmanager
    def aggregator(self) -> Iterator[None]:
        words = ["dev", str(self.definitions), "--store", self.store_url, "--json"]
        command = [sys.executable, "-m", "veilcount_aggregator", *words]
        with (self.folder / "aggregator.log").open("wb") as log:
            process = subprocess.Popen(
                [*command, "--bind", self.url.removeprefix("http://")], stdout=log, stderr=log
            )
        try:
            wait_until(lambda: _answers(self.url), 60)
            yield
        finally:
            process.terminate()
            process.wait()

    @contextmanager
    def shuffler(self) -> Iterator[_Processes]:
        processes = _Processes(self.shuffled.command)
        try:
            wait_until(lambda: _answers(str(self.shuffled.bind)), 60)
            yield processes
        finally:
            processes.kill()

    def send(self, plan: EnvelopeRun) -> subprocess.Popen[bytes]:
        users = str(plan.users)
        words = ["--headless", "--only-summary", "--users", users, "--spawn-rate", users]
        words += ["--host", str(self.shuffled.bind), "--exit-code-on-error", "0"]
        words += ["--run-time", f"{MOST_TIMES * plan.seconds}s", "--stop-timeout", "30"]
        environ = os.environ | {"VEILCOUNT_LOAD": str(self.folder)}
        with (self.folder / "locust.log").open("wb") as log:
            return subprocess.Popen(
                [sys.executable, "-m", "locust", "--locustfile", str(LOCUSTFILE), *words],
                env=environ,
                stdout=log,
                stderr=log,
            )

    def result(self) -> dict[str, Any]:
        """Wait until the batch is there; return its figures."""
        headers = {"Authorization": f"Bearer {self.analyst}"}
        address = f"{self.url}/v1/collections/theme/estimate?level={LEVEL}"
        found: dict[str, Any] = {}

        def is_there() -> bool:
            reply = requests.get(address, headers=headers, timeout=30)
            found.update(reply.json())
            return any(series["ranges"][0]["n"] for series in found.get("series", ()))

        wait_until(is_there, MOST_SECONDS)
        return found


def _answers(url: str) -> bool:
    try:
        requests.get(f"{url}/health/live", timeout=5)
    except requests.RequestException:
        return False
    return True
