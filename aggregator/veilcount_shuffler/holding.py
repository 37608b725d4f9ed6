"""Holding: sealed reports of one group are durable in their crowds before any is acknowledged.

The state of a crowd is read under the lock that its sealing takes alone: a report is either in the
batch, or its device learns that the crowd is over.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from datetime import datetime
from enum import StrEnum

from veilcount_shared.shuffling.envelope import Envelope

from .crowd_folder import CrowdFolder
from .crowd_limit import CrowdFull, CrowdLimit
from .crowd_states import CrowdState
from .crowd_store import CrowdStore
from .errors import ShufflerError
from .held_file import HeldFile
from .served_crowds import ServedCrowd


class EnvelopeAnswer(StrEnum):
    """What a device learns of its envelope."""

    HELD = "held"
    OVER = "over"
    UNKNOWN = "unknown-crowd"
    WRONG_SIZE = "wrong-size"
    UNAVAILABLE = "unavailable"


class Holding:
    """The crowds that one worker holds reports of."""

    def __init__(
        self, store: CrowdStore, report: Callable[[Exception], object] | None = None
    ) -> None:
        """Open no file yet; `report` learns of a disk that takes nothing, and of a full crowd."""
        self._store = store
        self._report = report
        self._states = store.states
        self._files: dict[bytes, HeldFile] = {}
        self._limits: dict[bytes, CrowdLimit] = {}

    def hold(self, envelopes: Sequence[Envelope]) -> list[EnvelopeAnswer]:
        """Hold a group; the answers in the order of the envelopes."""
        now = self._store.clock()
        answers: list[EnvelopeAnswer | None] = [None] * len(envelopes)
        groups: dict[bytes, list[int]] = defaultdict(list)
        crowds: dict[bytes, ServedCrowd] = {}
        for place, envelope in enumerate(envelopes):
            crowd = self._store.served.get(envelope.crowd_id, envelope.period, now)
            answers[place] = self._early_answer(crowd, envelope, now)
            if crowd is not None and answers[place] is None:
                groups[crowd.crowd_id].append(place)
                crowds[crowd.crowd_id] = crowd
        for crowd_id, places in groups.items():
            answer = self._answer(crowds[crowd_id], [envelopes[place].sealed for place in places])
            for place in places:
                answers[place] = answer
        return [answer or EnvelopeAnswer.UNAVAILABLE for answer in answers]

    @property
    def crowd_ids(self) -> list[bytes]:
        """The crowds that this process holds reports of."""
        return list(self._files)

    def close(self) -> None:
        """Close the files."""
        while self._files:
            self._files.popitem()[1].close()

    def _early_answer(
        self, crowd: ServedCrowd | None, envelope: Envelope, now: datetime
    ) -> EnvelopeAnswer | None:
        """Return an answer for which nothing is written; None: the crowd may take the report.

        By our clock alone no crowd is over: a device drops a report of one that is.
        """
        if crowd is None or now < crowd.opens:
            return EnvelopeAnswer.UNKNOWN
        if len(envelope.sealed) != crowd.size:
            return EnvelopeAnswer.WRONG_SIZE
        if now < crowd.closes:
            return None
        is_over = (self._states.state(crowd.crowd_id) or CrowdState.OPEN) is not CrowdState.OPEN
        return EnvelopeAnswer.OVER if is_over else EnvelopeAnswer.UNAVAILABLE

    def _answer(self, crowd: ServedCrowd, sealed: Sequence[bytes]) -> EnvelopeAnswer:
        try:
            return self._hold(crowd, sealed)
        except CrowdFull as error:  # nothing was written, and the file stays open
            self._fail(error)
            return EnvelopeAnswer.UNAVAILABLE
        except (OSError, ShufflerError) as error:  # a full disk, no witness: none counts
            self._fail(error)
            if file := self._files.pop(crowd.crowd_id, None):
                file.close()
            return EnvelopeAnswer.UNAVAILABLE

    def _hold(self, crowd: ServedCrowd, sealed: Sequence[bytes]) -> EnvelopeAnswer:
        if crowd.crowd_id not in self._files:
            if self._store.begin(crowd) is not CrowdState.OPEN:
                return EnvelopeAnswer.OVER
            self._store.witness.opened(crowd.crowd_id)
        folder = self._store.folder(crowd.crowd_id)
        with folder.lock(exclusive=False):
            if self._states.state(crowd.crowd_id) is not CrowdState.OPEN:
                return EnvelopeAnswer.OVER
            file = self._file(crowd, folder)
            if not self._limits[crowd.crowd_id].takes(len(sealed)):
                raise CrowdFull
            file.append(sealed)
        return EnvelopeAnswer.HELD

    def _file(self, crowd: ServedCrowd, folder: CrowdFolder) -> HeldFile:
        file = self._files.get(crowd.crowd_id)
        if file is None:
            file = self._files[crowd.crowd_id] = HeldFile(folder.path, crowd.size, self._store.disk)
            self._limits[crowd.crowd_id] = CrowdLimit(crowd, folder.path)
        return file

    def _fail(self, error: Exception) -> None:
        if self._report is not None:
            self._report(error)
