"""Envelopes on their way to a group, and their answers: what both ways over HTTP have in common.

A request leaves no line in a log, and no address anywhere: its network's limit is in memory. Of its
answer one is added to a day's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from veilcount_serving.errors import Overloaded
from veilcount_serving.group_commit import Pending, settle
from veilcount_serving.loop_groups import LoopGroups
from veilcount_serving.plain_head import FORWARDED_FOR
from veilcount_serving.response_headers import HEADERS
from veilcount_serving.structured_logging import FaultLog
from veilcount_serving.worker_supervisor import NAME
from veilcount_shared.errors import UnknownVersion, WireError
from veilcount_shared.problem_details import PROBLEM_TYPE, Problem, ProblemError
from veilcount_shared.shuffling.envelope import ENVELOPE_TYPE, MAX_SEALED, Envelope
from veilcount_shared.wire import JSON_TYPE

from .envelope_figures import EnvelopeFigures
from .holding import EnvelopeAnswer, Holding
from .network_limit import NetworkLimit, sender
from .problems import problem

MAX_BODY = MAX_SEALED + 64
ENDPOINT = "envelopes"
#: what a request gets: what became of its envelope, or why it was refused before
Outcome = EnvelopeAnswer | ProblemError


class EnvelopeResponse(NamedTuple):
    """A response, as a worker sends it."""

    status: int
    headers: list[tuple[str, str]]
    body: bytes

    @classmethod
    def from_problem(cls, refusal: Problem) -> EnvelopeResponse:
        """Return the response that is a problem document."""
        headers = {"content-type": PROBLEM_TYPE, **HEADERS, **refusal.headers, "server": NAME}
        return cls(refusal.status, list(headers.items()), refusal.body)


JSON_HEADERS = [("content-type", JSON_TYPE), *HEADERS.items(), ("server", NAME)]
_HELD = EnvelopeResponse(202, JSON_HEADERS, b'{"state":"held"}')


class EnvelopeRequest(NamedTuple):
    """An envelope that waits for its group."""

    envelope: Envelope
    pending: Pending[Outcome]

    @property
    def size(self) -> int:
        """How many bytes it has."""
        return len(self.envelope.sealed)

    @property
    def content(self) -> int:
        """The same: its padding is sealed, too."""
        return self.size


class EnvelopeIntake:
    """Admits envelopes, has them held in groups, and answers them. On one event loop."""

    def __init__(
        self,
        holding: Holding,
        limit: NetworkLimit,
        faults: FaultLog,
        has_space: Callable[[], bool],
        *,
        figures: EnvelopeFigures,
    ) -> None:
        """Hold envelopes; without room on the disk they have to come back."""
        self._limit = limit
        self._faults = faults
        self._figures = figures
        self.has_space = has_space
        self._groups: LoopGroups[EnvelopeRequest, Outcome] = LoopGroups(
            lambda requests: holding.hold([request.envelope for request in requests]),
            self._failed,
            _settle_all,
        )

    def admit(self, fields: Mapping[str, str], peer: str | None) -> None:
        """Admit a request by its head and its peer (None: it is gone), or raise a ProblemError."""
        if fields.get("content-type", "").lower() != ENVELOPE_TYPE:
            raise ProblemError(problem("unsupported"))
        size = fields.get("content-length", "")
        if not size.isdecimal() or int(size[:9]) > MAX_BODY or len(size) > len("99999"):
            raise ProblemError(problem("too-large"))
        if peer is None:  # nobody waits, and no network could be counted
            raise ProblemError(problem("unavailable"))
        if seconds := self._limit.wait(sender(peer, fields.get(FORWARDED_FOR, ""))):
            raise ProblemError(problem("too-many", seconds=seconds))
        if not self.has_space():
            raise ProblemError(problem("unavailable"))

    def submit(self, raw: bytes, pending: Pending[Outcome]) -> None:
        """Have an envelope held with the next group, or raise a ProblemError."""
        try:
            self._groups.submit(EnvelopeRequest(_decode(raw), pending))
        except Overloaded:
            raise ProblemError(problem("unavailable")) from None

    def respond(self, outcome: Outcome) -> EnvelopeResponse:
        """Return the response to a request, and count it."""
        if outcome == EnvelopeAnswer.HELD:
            self._figures.count(EnvelopeAnswer.HELD)
            return _HELD
        refusal = outcome.problem if isinstance(outcome, ProblemError) else problem(outcome)
        self._figures.count(refusal.kind.name)
        return EnvelopeResponse.from_problem(refusal)

    def _failed(self, error: Exception) -> EnvelopeAnswer:
        self._faults.log("failed", ENDPOINT, error)
        return EnvelopeAnswer.UNAVAILABLE


def _settle_all(settled: Sequence[tuple[EnvelopeRequest, Outcome]]) -> None:
    for request, outcome in settled:
        settle(request.pending, outcome)


def _decode(raw: bytes) -> Envelope:
    try:
        return Envelope.decode(raw)
    except UnknownVersion:
        raise ProblemError(problem("unknown-version")) from None
    except WireError as error:
        raise ProblemError(problem("bad-field", str(error))) from None
