"""Sealing: a randomized report, encrypted to the aggregator for the crowd of its period.

It happens once, in the commit that freezes the answer: a retry sends the same bytes, or a shuffler
would find two reports where a reply was lost. The key is the app's own: one that was fetched could
be one person's alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from veilcount_shared import Collection, schedule
from veilcount_shared.collection import Linkage
from veilcount_shared.oblivious_http.key_file import RelayKey, key_for
from veilcount_shared.report import Report
from veilcount_shared.shuffling.crowd import Crowd
from veilcount_shared.shuffling.envelope import Envelope
from veilcount_shared.shuffling.plain_report import PlainReport
from veilcount_shared.shuffling.sealed_report import seal_report

from ..state import ClientState
from ..state.losses import Loss


@dataclass(frozen=True)
class Sealing:
    """Seals reports of collections that travel by shuffler, under the keys of the app."""

    state: ClientState  # which has the tokens
    keys: Sequence[RelayKey]  # the newest first

    def seal(self, person: bytes, collection: Collection, report: Report) -> bytes | Loss:
        """Return the envelope of a report, sealed afresh, or why there can be none."""
        period_start = schedule.period_start(collection, report.period).date()
        key = key_for(self.keys, period_start)
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
        return Envelope(crowd, report.period, sealed).encode()
