"""Sends canaries as a device sends reports: each alone, when it is due, again until it is held.

What became of each is written before the next one leaves, so that whoever was interrupted goes on:
what fell due meanwhile leaves within the hour, each at an instant of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

import requests

from veilcount_shared.randomness import RandomSource, SystemRandomSource
from veilcount_shared.shuffling.envelope import ENVELOPE_TYPE

from .canary_file import Canary, CanaryBatch, CanaryFile

ENVELOPES_PATH = "/v1/envelopes"
RETRY_SECONDS = 3600  # within which what was not held is sent again
SECONDS = 30.0
HELD, OVER = 202, 410
NO_ANSWER = 0
#: those of a device: a shuffler must not tell canaries by them
HEADERS = {
    "Content-Type": ENVELOPE_TYPE,
    "User-Agent": "veilcount",
    "Accept-Encoding": "identity",
    "Connection": "close",
}

#: posts an envelope to a shuffler, through a proxy or directly (empty); returns the status
Post = Callable[[str, bytes, str], int]


def post_envelope(shuffler: str, envelope: bytes, proxy: str) -> int:
    """Post an envelope on a connection of its own; return the status, or NO_ANSWER."""
    try:
        with requests.Session() as session:
            reply = session.post(
                shuffler.rstrip("/") + ENVELOPES_PATH,
                data=envelope,
                headers=HEADERS,
                proxies={"http": proxy, "https": proxy} if proxy else None,
                auth=lambda request: request,  # so that no .netrc adds a name
                timeout=SECONDS,
                allow_redirects=False,
                stream=True,
            )
            return int(reply.status_code)
    except requests.RequestException:
        return NO_ANSWER


@dataclass(frozen=True, slots=True)
class Share:
    """One of several equal shares of a plan's canaries, each sent from a place of its own."""

    number: int = 1
    shares: int = 1

    def has(self, canary: Canary) -> bool:
        """Whether a canary is in this share."""
        return canary.number % self.shares == self.number - 1


@dataclass(frozen=True, slots=True)
class CanarySender:
    """Sends the canaries of a file, through some proxies in turn; one always by the same."""

    path: Path
    clock: Callable[[], datetime]
    sleep: Callable[[float], None]
    proxies: Sequence[str] = ()
    share: Share = Share()
    post: Post = post_envelope
    randomness: RandomSource = field(default_factory=SystemRandomSource)

    def run(self) -> CanaryFile:
        """Send until none is pending; return the file."""
        file = CanaryFile.load(self.path)
        self._postpone_overdue(file)
        while pending := self._pending(file):
            batch, canary = min(pending, key=lambda entry: entry[1].due)
            self._wait(canary)
            self._attempt(file, batch, canary)
            file.save(self.path)
        return file

    def _pending(self, file: CanaryFile) -> list[tuple[CanaryBatch, Canary]]:
        return [entry for entry in file.pending() if self.share.has(entry[1])]

    def _postpone_overdue(self, file: CanaryFile) -> None:
        """Give what fell due before this start a time within the hour, as a device does."""
        now = self.clock()
        for _, canary in self._pending(file):
            if canary.due < now:
                canary.due = self._within_the_hour(now)

    def _wait(self, canary: Canary) -> None:
        seconds = (canary.due - self.clock()).total_seconds()
        if seconds > 0:
            self.sleep(seconds)

    def _attempt(self, file: CanaryFile, batch: CanaryBatch, canary: Canary) -> None:
        if self.clock() >= batch.ends:
            canary.is_over = True
            return
        status = self.post(file.shuffler, bytes.fromhex(canary.envelope), self._proxy(canary))
        now = self.clock()
        if status == HELD:
            canary.held = now
        elif status == OVER:
            canary.is_over = True
        else:
            canary.due = self._within_the_hour(now)

    def _proxy(self, canary: Canary) -> str:
        turn = canary.number // self.share.shares
        return self.proxies[turn % len(self.proxies)] if self.proxies else ""

    def _within_the_hour(self, now: datetime) -> datetime:
        return now + timedelta(seconds=1 + self.randomness.below(RETRY_SECONDS))
