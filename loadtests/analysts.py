"""Analysts who ask for the heaviest results, as fast as they are answered."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Sequence
from types import TracebackType
from typing import Self

import requests

THREADS = 4
TIMEOUT = 60.0
#: every row of a large domain, the search behind a trust-model comparison, the planner
HEAVY_QUERIES = (
    "/v1/collections/plugin/estimate?top=100000",
    "/v1/collections/plugin/contrast",
    "/v1/collections/plugin/compare?a=arm:A&b=arm:B",
    "/v1/plan?values=1000000&epsilon=1",
)


class AnalystLoad:
    """Threads that send queries in turn until the block ends; counts the status of each reply."""

    def __init__(self, url: str, key: str, queries: Sequence[str]) -> None:
        """Send to the server at this address with this key."""
        self.statuses: Counter[int] = Counter()
        self._url = url
        self._headers = {"Authorization": f"Bearer {key}", "Accept": "text/csv, */*"}
        self._queries = queries
        self._stopping = threading.Event()
        self._threads = [
            threading.Thread(target=self._run, args=(number,), daemon=True)
            for number in range(THREADS)
        ]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stopping.set()
        for thread in self._threads:
            thread.join(TIMEOUT)

    def _run(self, number: int) -> None:
        with requests.Session() as session:
            session.trust_env = False
            while not self._stopping.is_set():
                query = self._queries[number % len(self._queries)]
                number += 1
                try:
                    reply = session.get(self._url + query, headers=self._headers, timeout=TIMEOUT)
                except requests.RequestException:
                    self._stopping.wait(0.1)
                else:
                    self.statuses[reply.status_code] += 1
