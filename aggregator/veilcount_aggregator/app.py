"""The web application: bytes in, verdicts out."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from datetime import datetime

from flask import Flask, Response, request

from veilcount_shared import Collection
from veilcount_shared.errors import BadField, UnknownVersion, WireError, WrongLength
from veilcount_shared.report import Batch
from veilcount_shared.wire import (
    JSON_TYPE,
    MAX_BODY,
    PACKED_TYPE,
    decode_json,
    decode_packed,
    encode_verdicts,
)

from .ingest import ingest
from .store import Store

_DECODERS: dict[str, Callable[[bytes], Batch]] = {
    JSON_TYPE: decode_json,
    PACKED_TYPE: decode_packed,
}
_PROBLEMS = {
    UnknownVersion: ("unknown-version", "This version of the protocol is not spoken here"),
    WrongLength: ("wrong-length", "Too short, too long or too many"),
    BadField: ("bad-field", "A field is missing, unknown or out of range"),
}


def create_app(
    collections: Iterable[Collection], store: Store, clock: Callable[[], datetime]
) -> Flask:
    """Return an aggregator of these collections."""
    app = Flask(__name__)
    app.config["MAX_CONTENT_LENGTH"] = MAX_BODY
    series = {collection.fingerprint: collection for collection in collections}

    @app.post("/v1/reports")
    def reports() -> Response:
        """Answer a batch with one verdict a report."""
        decode = _DECODERS.get(request.mimetype)
        if decode is None:
            raise BadField("Content-Type", f"give {' or '.join(_DECODERS)}")
        batch = decode(request.get_data())
        if batch.test:
            raise BadField("test", "test batches are for an aggregator in development mode")
        return Response(encode_verdicts(ingest(batch, series, store, clock())), mimetype=JSON_TYPE)

    app.register_error_handler(WireError, _problem)
    return app


def _problem(error: WireError) -> Response:
    """Return a refused body as RFC 9457 says."""
    kind, title = _PROBLEMS[type(error)]
    problem = {
        "type": f"urn:veilcount:problem:{kind}",
        "title": title,
        "status": 400,
        "detail": str(error),
        "place": error.place,
    }
    return Response(json.dumps(problem), 400, mimetype="application/problem+json")
