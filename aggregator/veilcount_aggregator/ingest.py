"""A body and a day to verdicts. No web in here.

A bad report in a good batch gets its verdict and the rest count. A report's age is judged here, but
a spent slot is looked up first (in the store): a late retry is told that it had succeeded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from types import EllipsisType

import numpy as np

from veilcount_shared.report import Losses
from veilcount_shared.verdict import Verdict

from .bodies import Body, Sheet
from .checking import valid
from .notebook import Notebook
from .pseudonym_limit import PseudonymLimit
from .series import Series
from .store import CODES, COUNTED, ROW_BYTES, VERDICT, VERDICTS, Codes, MemoryLimits, Note, Spends
from .store.memory import DEFAULT_LIMITS

Commit = Callable[[Sequence[Spends]], list[Codes]]
Fits = np.ndarray[tuple[int], np.dtype[np.bool_]]
Fit = Fits | EllipsisType  # `...`: all, and no copies
Asked = tuple[np.ndarray[tuple[int], np.dtype[np.intp]], Spends]  # with their places in the batch

LOSS = "loss"


@dataclass(frozen=True, slots=True)
class Intake:
    """What turns bodies into verdicts: where they are committed, and what is counted beside."""

    commit: Commit
    notebook: Notebook
    limit: PseudonymLimit
    memory: MemoryLimits = DEFAULT_LIMITS

    def take(self, body: Body, known: Mapping[str, Series], day: date) -> list[Verdict]:
        """Return one verdict a report, in the batch's order; what is counted is durable."""
        if body.losses is not None:
            self._note_losses(body.losses, known)
        verdicts = np.full(body.reports, CODES[Verdict.UNKNOWN_COLLECTION], np.uint8)
        asked: list[Asked] = []
        for sheet in body.sheets:
            series = known.get(sheet.fingerprint)
            if series is None:
                self._note("", Verdict.UNKNOWN_COLLECTION, len(sheet))
                continue
            codes = judge(series, sheet)
            verdicts[sheet.places] = codes
            fit = codes == COUNTED
            if not fit.all():
                self._note_refused(series, codes)
            asked += self._spends(series, sheet, fit, day)
        for (places, _), codes in zip(
            asked, self.commit([each for _, each in asked]) if asked else (), strict=True
        ):
            verdicts[places] = codes
        return [VERDICTS[code] for code in verdicts.tolist()]

    def _spends(self, series: Series, sheet: Sheet, fit: Fits, day: date) -> Iterator[Asked]:
        """Yield the reports that fit their definition, those of one limit together."""
        whole = bool(fit.all())
        memory = self.limit.memory(series, self.memory)
        if not self.limit.secret(series):
            if whole or fit.any():
                places = sheet.places if whole else sheet.places[fit]
                found = spends(
                    series, sheet, ... if whole else fit, day, self.limit.most, memory=memory
                )
                yield places, found
            return
        for period in np.unique(sheet.periods[fit]).tolist():
            chosen = fit & (sheet.periods == period)
            limit = self.limit.of(series, period)
            yield sheet.places[chosen], spends(series, sheet, chosen, day, limit, memory=memory)

    def _note_refused(self, series: Series, codes: Codes) -> None:
        for code, number in enumerate(np.bincount(codes).tolist()):
            if number and code != COUNTED:
                self._note(series.fingerprint, VERDICTS[code], number)

    def _note(self, fingerprint: str, verdict: Verdict, number: int) -> None:
        self.notebook.note(Note(VERDICT, fingerprint, -1, verdict), number)

    def _note_losses(self, losses: Losses, known: Mapping[str, Series]) -> None:
        """Count one device's losses by reason and bucket; of unknown series none are kept."""
        if losses.fingerprint not in known:
            return
        for reason in ("aged", "evicted", "corrupt"):
            if bucket := getattr(losses, reason):
                self.notebook.note(Note(LOSS, losses.fingerprint, -1, f"{reason}:{bucket}"))


def judge(series: Series, sheet: Sheet) -> Codes:
    """Return what the definition says of each report, as `veilcount_shared.report.check` does."""
    collection = series.collection
    width = collection.per_period
    first = sheet.periods * width if series.linked else 0
    size = width if collection.slots >= width else 1
    sound = (sheet.periods < collection.periods) & (sheet.segments < collection.cells)
    granted = (sheet.slots >= first) & (sheet.slots < first + size)
    messages = valid(collection, sheet.messages)
    codes = np.full(len(sheet), COUNTED)
    if (sound & granted & messages).all():  # nearly always
        return codes
    codes[~messages] = CODES[Verdict.MALFORMED]
    codes[~granted] = CODES[Verdict.OVER_BUDGET]
    codes[~sound] = CODES[Verdict.MALFORMED]
    return codes


def spends(
    series: Series,
    sheet: Sheet,
    fit: Fit,
    day: date,
    room: int,
    *,
    memory: MemoryLimits = DEFAULT_LIMITS,
) -> Spends:
    """Return the reports that fit their definition as the store wants them, their ages judged."""
    periods = sheet.periods[fit]
    oldest, newest = series.taken(day)
    otherwise = np.full(len(periods), COUNTED)
    otherwise[periods > newest] = CODES[Verdict.EARLY]
    otherwise[periods < oldest] = CODES[Verdict.STALE]
    if series.closed:
        otherwise[:] = CODES[Verdict.CLOSED]
    return Spends(
        series,
        sheet.pseudonyms[fit][:, :ROW_BYTES],
        np.zeros_like(periods) if series.linked else periods,
        periods,
        sheet.segments[fit],
        sheet.slots[fit],
        sheet.messages[fit],
        otherwise,
        room,
        memory,
    )
