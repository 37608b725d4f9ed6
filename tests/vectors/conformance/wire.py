"""Bodies and replies: their bytes, what is refused, padded lengths, buckets of losses."""

from __future__ import annotations

from typing import Any

from veilcount_client.delivery.padded_bodies import encode_padded
from veilcount_shared.errors import WireError
from veilcount_shared.report import Batch, Losses, Report
from veilcount_shared.verdict import Verdict
from veilcount_shared.wire import (
    decode_binary,
    decode_verdicts,
    encode_binary,
    encode_json,
    json_to_binary,
)

from ..wire_bodies import batch_of, runs_of, text

Vector = dict[str, Any]


def good_body(vector: Vector) -> Vector:
    """Return the body of a batch; its translation is the same, and it is decoded to the batch."""
    batch = batch_of(vector["batch"])
    body = encode_binary(batch)
    pinned = bytes.fromhex(text(vector["body"]))
    if decode_binary(pinned) != batch or json_to_binary(encode_json(batch)) != body:
        raise AssertionError(f"{vector['why']}: it is decoded to another batch")
    return vector | {"body": runs_of(body)}


def bad_bodies(rows: list[Vector]) -> list[Vector]:
    """Return why each body is refused, and where."""
    return [row | _refusal(bytes.fromhex(text(row["body"]))) for row in rows]


def _refusal(body: bytes) -> Vector:
    try:
        decode_binary(body)
    except WireError as error:
        return {"error": type(error).__name__, "place": error.place}
    return {"error": None, "place": None}


def bodies(document: Vector) -> Vector:
    """Return padded lengths, buckets of losses, and the verdicts of replies."""
    return {
        "about": document["about"],
        "lengths": [_lengths(*row[:2]) for row in document["lengths"]],
        "losses": [[count, Losses.bucket(count)] for count, _ in document["losses"]],
        "verdicts": [[word, _kept(Verdict(word))] for word, _ in document["verdicts"]],
        "replies": [
            [reply, count, _verdicts(reply, count)] for reply, count, _ in document["replies"]
        ],
    }


def _kept(verdict: Verdict) -> str:
    """Return what a device does with the report."""
    return "done" if verdict.delivered else "kept" if verdict.retry else "dropped"


def _lengths(reports: int, width: int) -> list[int]:
    batch = Batch((Report("ab" * 32, 0, 0, bytes(16), 0, bytes(width)),) * reports)
    padded = encode_padded(batch)
    if decode_binary(padded).reports != batch.reports:
        raise AssertionError(f"{reports} reports: padding changed them")
    return [reports, width, len(encode_binary(batch)), len(padded)]


def _verdicts(reply: str, count: int) -> list[str] | None:
    try:
        return [str(verdict) for verdict in decode_verdicts(reply.encode(), count)]
    except WireError:
        return None


_GOOD = '{"verdicts":["counted","duplicate"]}'


def body_inputs() -> Vector:
    """Return what is pinned of bodies and replies, without the results."""
    lengths = [(1, 1), (2, 1), (40, 1), (42, 1), (43, 2), (100, 8), (163, 1), (176, 1), (177, 1)]
    lengths += [
        (500, 3),
        (500, 10),
        (500, 11),
        (500, 250),
        (500, 256),
        (500, 1024),
        (6, 141),
        (370, 155),
    ]
    replies = [
        *((_GOOD, 2), (_GOOD, 1), (_GOOD, 3), ('{"verdicts":[]}', 0), ('{"verdicts":{}}', 0)),
        ('{"verdicts":["counted","reconsidered"]}', 2),
        ('{"verdicts":["counted",1]}', 2),
        ('{"verdicts":["counted",null]}', 2),
        ('{"verdicts":["Counted"]}', 1),
        ('{"verdicts":["over_budget","stale","closed","malformed"]}', 4),
        ('{"verdicts":["full","unknown_collection","early"]}', 3),
        ('{"x8":"ab12","verdicts":["counted"],"later":[{"a":1.5}]}', 1),
        ('{"verdicts":["counted"],"verdicts":["full"]}', 1),
        *((each, 1) for each in ('{"verdict":["counted"]}', '["counted"]', "", "{", "null")),
    ]
    counts = (0, 1, 9, 10, 99, 100, 999, 1000, 9999, 10_000, 123_456)
    return {
        "about": "`lengths`: a body of so many reports of one series, with messages of so many"
        " bytes: its length without padding, and padded as a device pads it. `losses`: a count, its"
        " bucket. `replies`: a reply to so many reports, its verdicts; null where it is no valid"
        ' reply; "unknown" is a verdict that keeps its report.',
        "lengths": [[*row, 0] for row in lengths],
        "losses": [[count, 0] for count in counts],
        "verdicts": [[str(verdict), None] for verdict in Verdict],
        "replies": [[*row, None] for row in replies],
    }
