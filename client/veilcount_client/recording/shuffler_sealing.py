"""Sealing: a randomized report, encrypted to the aggregator for the crowd of its period.

It happens once, in the commit that freezes the answer: a retry sends the same bytes, or a shuffler
would find two reports where a reply was lost. The key is the app's own: one that was fetched could
be one person's alone.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, datetime

from veilcount_shared import Collection, schedule
from veilcount_shared.collection import Linkage
from veilcount_shared.oblivious_http.key_config import KeyConfig
from veilcount_shared.oblivious_http.key_file import MOST_KEYS, RelayKey, key_for
from veilcount_shared.report import Report
from veilcount_shared.shuffling.crowd import Crowd
from veilcount_shared.shuffling.envelope import Envelope
from veilcount_shared.shuffling.plain_report import PlainReport
from veilcount_shared.shuffling.sealed_report import seal_report

from ..state import ClientState, Notes
from ..state.losses import Loss

KNOWN_KEYS = "relay keys"  # note: since when each is known, its first day, and it


class KnownKeys:
    """Which keys there are for a period: those that the state knew before it began.

    A key that came with an update of the app in the middle of a period would show whether its
    report was sealed before or after, and so whether something was recorded. The state has the keys
    themselves: a process of the earlier version seals as one of the later does.
    """

    def __init__(self, notes: Notes, keys: Sequence[RelayKey], now: float) -> None:
        """Keep which of these are new; of a new state, all were always known."""
        self._notes = notes
        stored = self._read()
        stored_keys = {key.encoded for _, key in stored}
        new = [(now if stored else 0.0, key) for key in keys if key.encoded not in stored_keys]
        rows = [(min(since, now), key) for since, key in [*stored, *new]]  # a clock was ahead
        if new or rows != stored:
            plain = [(since, f"{key.start}", key.encoded.hex()) for since, key in rows]
            notes.keep(KNOWN_KEYS, json.dumps(plain[-MOST_KEYS:]))

    def of_period(self, start: datetime) -> RelayKey | None:
        """Return the key that seals the reports of a period, if there is any."""
        candidates = [key for since, key in self._read() if since <= start.timestamp()]
        newest_first = sorted(candidates, key=lambda key: (key.start, key.encoded), reverse=True)
        return key_for(newest_first, start.date())

    def _read(self) -> list[tuple[float, RelayKey]]:
        rows = []
        for since, first_day, digits in json.loads(self._notes.note(KNOWN_KEYS) or "[]"):
            encoded = bytes.fromhex(digits)
            if (config := KeyConfig.decode(encoded)) is not None:
                rows.append((since, RelayKey(date.fromisoformat(first_day), encoded, config)))
        return rows


@dataclass(frozen=True)
class Sealing:
    """Seals reports of collections that travel by shuffler, under the keys of the app."""

    state: ClientState  # which has the tokens
    key: Callable[[datetime], RelayKey | None]  # of a period that begins at an instant
    address: Callable[[float], str]  # of the shuffler of a period that begins at an instant

    def seal(self, person: bytes, collection: Collection, report: Report) -> bytes | Loss:
        """Return an address and the envelope for it, sealed afresh, or why there can be none."""
        start = schedule.period_start(collection, report.period)
        key = self.key(start)
        if key is None:
            return Loss.NO_KEY
        plain = PlainReport(report.message)
        if collection.linkage is Linkage.TOKEN:
            token = self.state.token(person, report.pseudonym)
            if token is None:
                return Loss.NO_TOKEN
            plain = PlainReport(report.message, report.pseudonym, token)
        crowd = Crowd.of_period(collection, report.period, key.encoded, key.config).crowd_id
        sealed = seal_report(key.config, crowd, report.period, plain.encode())
        envelope = Envelope(crowd, report.period, sealed).encode()
        return self.address(start.timestamp()).encode() + b"\0" + envelope
