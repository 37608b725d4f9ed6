"""JSON bodies for the developer of a client: translated to what a device would send.

No production server has this step: its intake reads the binary encoding alone, since a small JSON
body can cost as much as a thousand reports.
"""

from __future__ import annotations

from collections.abc import Sequence

from veilcount_shared.errors import WireError
from veilcount_shared.wire import BINARY_TYPE, JSON_TYPE, json_to_binary

from .decode import RequestBody
from .group_intake import IntakeRequest, Process
from .pipeline import Outcome


def accepting_json(process: Process) -> Process:
    """Return a step of the intake that translates JSON bodies first."""

    def translated(requests: Sequence[IntakeRequest]) -> Sequence[Outcome]:
        errors: dict[int, WireError] = {}
        accepted = []
        for place, request in enumerate(requests):
            try:
                accepted.append(request._replace(body=binary_body(request.body)))
            except WireError as error:
                errors[place] = error.with_traceback(None)
        outcomes = iter(process(accepted) if accepted else ())
        return [errors.get(place) or next(outcomes) for place in range(len(requests))]

    return translated


def binary_body(body: RequestBody) -> RequestBody:
    """Translate a JSON body to a binary one; return every other body as it came."""
    if body.content_type.partition(";")[0].strip().lower() != JSON_TYPE:
        return body
    return RequestBody(BINARY_TYPE, body.encoding, json_to_binary(body.raw))
