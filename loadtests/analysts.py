"""Analysts who ask for as much as they can, from a process of their own.

Four of them: plans, a CSV of 100,000 rows, trust-model comparisons, comparisons. No question is
asked twice, so that no cache answers it. `analyst_load(url, key)` lasts for a `with`; its findings
are the statuses that came, by question.
"""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import requests

from veilcount_shared import Collection, parse_collections
from veilcount_shared.limits import PSEUDONYM_BYTES
from veilcount_shared.report import Batch, Report
from veilcount_shared.wire import BINARY_TYPE, encode_binary

KEY = "VEILCOUNT_KEY"
VALUES = 100_000
SECONDS = 120.0  # an analyst's patience with one answer
ENDING_SECONDS = 2.0  # for answers that are under way; those that are not done are not counted
_FILE = """
app = "analysts"

[autosave]
question = "Is autosave on?"
boolean = true
epsilon = 1
unit = "day"
segments = {{arm = ["A", "B"]}}
from = {yesterday}
until = {later}

[plugin]
question = "Which plugin was opened last?"
values = {values}
epsilon = 3
unit = "day"
from = {yesterday}
until = {later}
"""

#: by name, the path of the n-th question
QUESTIONS: Mapping[str, Callable[[int], str]] = {
    "plan": lambda n: f"/v1/plan?values=100000&devices={100_000 + n}&error=0.01",
    "csv": lambda n: f"/v1/collections/plugin/estimate?size={VALUES}&level=0.9{n % 1000:03}",
    "contrast": lambda n: f"/v1/collections/plugin/contrast?n={100_000 + n}",
    "compare": lambda n: (
        f"/v1/collections/{{segmented}}/compare?a=arm:A&b=arm:B&level=0.9{n % 1000:03}"
    ),
}


def definitions(values: int = VALUES) -> str:
    """Return a definitions file that all questions can be asked of."""
    today = datetime.now(UTC).date()
    names = json.dumps([f"plugin-{place}" for place in range(values)])
    yesterday, later = today - timedelta(days=1), today + timedelta(days=30)
    return _FILE.format(values=names, yesterday=yesterday, later=later)


def parse(text: str) -> dict[str, Collection]:
    """Return the collections of a definitions file without value files."""
    return dict(parse_collections(text, lambda _: []))


def report_body(collection: Collection, place: int = 0) -> bytes:
    """Return the body of one report, of a pseudonym that was never seen."""
    pseudonym = secrets.token_bytes(PSEUDONYM_BYTES)
    message = secrets.randbelow(2) if collection.name == "autosave" else secrets.randbelow(64)
    segment = place % collection.cells
    report = Report(collection.fingerprint, 1, segment, pseudonym, 0, collection.pack(message))
    return encode_binary(Batch((report,)))


def send(session: requests.Session, url: str, body: bytes) -> requests.Response:
    """Send a body as a device does."""
    headers = {"Content-Type": BINARY_TYPE}
    return session.post(f"{url}/v1/reports", body, headers=headers, timeout=SECONDS)


@dataclass
class Findings:
    """The statuses that came, by question, once the analysts have stopped."""

    statuses: dict[str, dict[str, int]] = field(default_factory=dict)

    def seen(self) -> set[str]:
        """Return all statuses, and the names of errors, that came."""
        return {status for found in self.statuses.values() for status in found}

    def count(self, status: int) -> int:
        """Return how often a status came."""
        return sum(found.get(str(status), 0) for found in self.statuses.values())


@contextmanager
def analyst_load(
    url: str, key: str, analysts: int = len(QUESTIONS), segmented: str = "autosave"
) -> Iterator[Findings]:
    """Let analysts ask without a pause, for as long as the `with` lasts.

    They compare the segments `arm` of the collection `segmented`.
    """
    found = Findings()
    process = subprocess.Popen(
        [sys.executable, "-m", "loadtests.analysts", url, str(analysts), segmented],
        cwd=Path(__file__).parent.parent,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=os.environ | {KEY: key, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    try:
        assert process.stdout is not None
        process.stdout.readline()  # they have begun
        yield found
    finally:
        output, _ = process.communicate(b"", timeout=SECONDS * 2)
    found.statuses.update(json.loads(output))


class Analyst(threading.Thread):
    """One analyst, who asks one kind of question at a time until stopped."""

    def __init__(
        self, url: str, key: str, name: str, segmented: str, stopping: threading.Event
    ) -> None:
        super().__init__(daemon=True)
        self._segmented = segmented
        self.statuses: Counter[str] = Counter()
        self._url, self._kind, self._stopping = url, name, stopping
        self._headers = {"Authorization": f"Bearer {key}", "Accept": "text/csv, */*;q=0.1"}

    def run(self) -> None:
        """Ask, and read each answer to its end."""
        with requests.Session() as session:
            session.trust_env = False
            while not self._stopping.is_set():
                self.statuses[self._ask(session)] += 1

    def _ask(self, session: requests.Session) -> str:
        path = QUESTIONS[self._kind](secrets.randbelow(1_000_000))
        path = path.format(segmented=self._segmented)
        options: dict[str, Any] = {"headers": self._headers, "timeout": SECONDS, "stream": True}
        try:
            with session.get(self._url + path, **options) as reply:
                for _ in reply.iter_content(1 << 16):
                    pass
                if reply.status_code == requests.codes.unavailable:
                    time.sleep(0.2)  # a tenth of what it asks for
                return str(reply.status_code)
        except requests.RequestException as error:
            return type(error).__name__


def main() -> None:
    """Ask until stdin ends; print what came."""
    url, number, segmented = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    stopping, names = threading.Event(), list(QUESTIONS)
    chosen = [names[place % len(names)] for place in range(number)]
    analysts = [Analyst(url, os.environ[KEY], name, segmented, stopping) for name in chosen]
    for each in analysts:
        each.start()
    print("begun", flush=True)
    sys.stdin.read()
    stopping.set()
    ends = time.monotonic() + ENDING_SECONDS
    found: dict[str, Counter[str]] = {}
    for name, each in zip(chosen, analysts, strict=True):
        each.join(max(0.0, ends - time.monotonic()))
        found.setdefault(name, Counter()).update(each.statuses)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
