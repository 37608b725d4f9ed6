"""A test batch without a report: what `doctor` sends an aggregator, and what the reply means."""

from __future__ import annotations

from veilcount_shared.report import Batch, Losses
from veilcount_shared.wire import VERSION, encode_binary

from ..delivery.replies import describe
from ..delivery.transport import OK, Reply, problem_document


def empty_batch(fingerprint: str) -> bytes:
    """Return a batch that counts nothing.

    An aggregator in production refuses it by name, which only one that read it can do; one in
    development takes it.
    """
    return encode_binary(Batch(losses=Losses(fingerprint), test=True))


def judge_reply(reply: Reply, *, keyed: bool) -> tuple[bool, str]:
    """Return whether an aggregator replied as it should, and what it said."""
    problem = problem_document(reply)
    if reply.status == OK:
        return True, "takes test batches: it is in development mode"
    if problem.get("place") == "test":
        return True, f"speaks version {VERSION}"
    if str(problem.get("type", "")).endswith("unknown-version"):
        return False, f"does not speak version {VERSION}: bring both to the same release"
    return False, describe(str(reply.status), keyed=keyed)
