"""Plain requests with envelopes: a worker's front has them held, and answers them.

They join the groups of the envelopes that were passed on.
"""

from __future__ import annotations

from contextlib import suppress

from veilcount_serving.front_connection import PlainRequest
from veilcount_serving.group_commit import ANSWER_SECONDS
from veilcount_shared.problem_details import ProblemError

from .envelope_intake import EnvelopeIntake, Outcome
from .problems import problem

ENVELOPES_PATH = "/v1/envelopes"


class PendingEnvelope:
    """A request that waits for its group."""

    __slots__ = ("_intake", "_request")

    def __init__(self, intake: EnvelopeIntake, request: PlainRequest) -> None:
        self._intake, self._request = intake, request

    def done(self) -> bool:
        """Whether nobody waits any more."""
        return self._request.is_answered

    def set_result(self, outcome: Outcome) -> None:
        """Answer the request by its outcome."""
        self._request.answer(*self._intake.respond(outcome))


class PlainEnvelopes:
    """Takes the plain requests of one worker's front."""

    start = f"POST {ENVELOPES_PATH} HTTP/1.1\r\n".encode()
    asks_peers = True  # for the limit of their networks

    def __init__(self, intake: EnvelopeIntake) -> None:
        self._intake = intake

    def is_own(self, _: bytes) -> bool:
        """Whether it may be passed on to this worker's server alone: a worker has no others."""
        return True

    def take(self, request: PlainRequest) -> bool:
        """Take a request for the next group, or refuse it."""
        pending = PendingEnvelope(self._intake, request)
        try:
            self._intake.admit(request.head.fields, request.peer)
            self._intake.submit(request.body, pending)
        except ProblemError as error:
            pending.set_result(error)
        return True

    def incomplete(self, request: PlainRequest) -> None:
        """Answer a request whose body did not come, and count it for its network."""
        with suppress(ProblemError):
            self._intake.admit(request.head.fields, request.peer)
        self._refuse(request, "incomplete")

    def end_overdue(self, request: PlainRequest, now: float) -> None:
        """Answer a request whose group hangs."""
        if now - request.begun > ANSWER_SECONDS:
            self._refuse(request, "unavailable")

    def _refuse(self, request: PlainRequest, name: str) -> None:
        PendingEnvelope(self._intake, request).set_result(ProblemError(problem(name)))
