"""What follows from the outcome of a body, decided without I/O; the uploader applies it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from veilcount_shared.verdict import Verdict

from ..state import QueuedReport
from ..state.losses import Loss
from .transport import Later, Outcome, Rejected


@dataclass(frozen=True, slots=True)
class Effects:
    """What becomes of the reports of one body; each is delivered, dropped or retried."""

    answered: Sequence[QueuedReport] = ()  # whose rows got through
    closed: Sequence[QueuedReport] = ()  # whose rows take no more
    delivered: Sequence[int] = ()
    dropped: Mapping[int, Loss] = field(default_factory=dict)
    retried: Sequence[QueuedReport] = ()
    after: float = 0.0  # seconds that the server asked to wait
    seen: bool = True  # whether the server may have read the body


def decide(queued_reports: Sequence[QueuedReport], outcome: Outcome) -> Effects:
    """Return what follows from the outcome of sending these reports in one body."""
    if isinstance(outcome, Later):
        return Effects(retried=queued_reports, after=outcome.seconds, seen=outcome.seen)
    if isinstance(outcome, Rejected):
        return decide_verdicts(queued_reports, [Verdict.MALFORMED] * len(queued_reports))
    return decide_verdicts(queued_reports, outcome.verdicts)


def decide_verdicts(queued_reports: Sequence[QueuedReport], verdicts: Sequence[str]) -> Effects:
    """Return what follows from one verdict for each report; on an unknown one it is kept."""
    pairs = list(zip(queued_reports, verdicts, strict=True))
    recognized = [(report, verdict) for report, verdict in pairs if isinstance(verdict, Verdict)]
    return Effects(
        answered=queued_reports,
        closed=[report for report, verdict in recognized if verdict is Verdict.CLOSED],
        delivered=[report.number for report, verdict in recognized if verdict.delivered],
        dropped={report.number: Loss(verdict) for report, verdict in recognized if verdict.dropped},
        retried=[
            report for report, verdict in pairs if not isinstance(verdict, Verdict) or verdict.retry
        ],
    )
