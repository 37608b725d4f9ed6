"""The decoders of untrusted bytes, each as a function of bytes.

A target returns "accepted", or the class and the place of the error that its decoder documents. It
raises everything else: an exception of another class, or a broken property of accepted bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flask import Flask

from veilcount_aggregator.intake.decode import DecodedBody, RequestBody, decode_group
from veilcount_aggregator.web.api.json_io import parse_body
from veilcount_aggregator.web.api.schemas import RowCloseRequest
from veilcount_client.delivery.issuer import IssuerUnavailable, _left, _signatures
from veilcount_client.delivery.transport import Reply, is_unknown_version, problem_document
from veilcount_issuer import app as issuer_app
from veilcount_shared.collection import Collection, parse_collections
from veilcount_shared.collection.compiled import parse_compiled
from veilcount_shared.collection.loading import NOT_UTF8
from veilcount_shared.compilation import compile_collections
from veilcount_shared.errors import DefinitionError, ObliviousError, TokenError, WireError
from veilcount_shared.limits import TOKEN_BYTES
from veilcount_shared.oblivious_http.binary_http import Request, Response
from veilcount_shared.oblivious_http.encapsulation import open_request, seal_request
from veilcount_shared.oblivious_http.key_config import KeyConfig, decode_configs, encode_configs
from veilcount_shared.oblivious_http.key_file import decode_key_file, encode_key_file
from veilcount_shared.problem_details import PROBLEM_TYPE, ProblemError
from veilcount_shared.shuffling.batch_record import BatchRecord
from veilcount_shared.shuffling.envelope import Envelope
from veilcount_shared.shuffling.part import BatchPart
from veilcount_shared.shuffling.plain_report import PLAIN_BYTES_WITH_TOKEN, PlainReport
from veilcount_shared.shuffling.sealed_report import open_report
from veilcount_shared.tokens import check_key_list, decode_key_list, digest, finalize, verify
from veilcount_shared.tokens.key_list import encode_key_list
from veilcount_shared.wire import (
    BINARY_TYPE,
    JSON_TYPE,
    decode_binary,
    decode_json,
    decode_verdicts,
    encode_binary,
    encode_json,
)

from ..aggregator.intake.test_decode import columns, decoded, of_batch, truth
from ..aggregator.intake.test_decode_group import alone, together
from ..issuer.test_signing import KEY
from ..issuer.test_signing import VECTORS as SIGNATURES
from ..properties.definition_harness import no_values_file
from ..properties.test_oblivious_http import CONFIG, EPHEMERAL, PRIVATE

Target = Callable[[bytes], str]

ACCEPTED = "accepted"
REPLY_TO = 2  # reports, slots or periods that a reply is for
DOCUMENTED = (
    DefinitionError,
    IssuerUnavailable,
    ObliviousError,
    ProblemError,
    TokenError,
    WireError,
)
_FLASK = Flask(__name__)
_, EXCHANGE = seal_request(KeyConfig.decode(CONFIG) or KeyConfig(0, b""), b"", EPHEMERAL)
_SIGNATURE = SIGNATURES[2]  # deterministic, with a salt


def outcome(decode: Callable[[bytes], Any], raw: bytes) -> str:
    """Return "accepted", or the class and the place of a documented error."""
    try:
        decode(raw)
    except DOCUMENTED as error:
        return f"{type(error).__name__}: {_place(error)}"
    return ACCEPTED


def _place(error: Exception) -> str:
    match error:
        case WireError():
            return error.place
        case DefinitionError():
            return error.key
        case ProblemError():
            return f"{error.problem.kind.name} {error.problem.place}".rstrip()
    return str(error).partition(":")[0]


def _require(*, holds: bool) -> None:
    if not holds:
        raise AssertionError("a property of accepted bytes does not hold")


# -- report batches --------------------------------------------------------------------------------


def batch_binary(raw: bytes) -> str:
    """Bodies of reports: the fast decoder accepts and refuses what the strict one does."""
    result = outcome(_batch_binary, raw)
    _require(holds=result == ACCEPTED or decoded(raw) == truth(raw))
    return result


def _batch_binary(raw: bytes) -> None:
    batch = decode_binary(raw)
    _require(holds=decoded(raw) == of_batch(batch))
    _require(holds=encode_binary(batch) == raw)
    _require(holds=decode_json(encode_json(batch)) == batch)


def batch_group(raw: bytes) -> str:
    """Decode a group of bodies, each behind its length in two bytes, to what they are alone."""
    requests = [RequestBody(BINARY_TYPE, "", body) for body in _prefixed(raw)]
    if not requests:
        return ACCEPTED
    apart = [alone(request, takes_tests=False) for request in requests]
    group = decode_group(requests, takes_tests=False)
    _require(holds=together(group) == [_without_losses(body) for body in apart])
    return "; ".join(
        ACCEPTED if isinstance(body, DecodedBody) else f"{body[0].__name__}: {body[1]}"
        for body in apart
    )


def _without_losses(body: DecodedBody | tuple[type[WireError], str]) -> object:
    if not isinstance(body, DecodedBody):
        return body
    return columns(DecodedBody(body.reports, body.series_columns))


def _prefixed(raw: bytes) -> list[bytes]:
    bodies = []
    while raw:
        size = int.from_bytes(raw[:2], "big")
        bodies.append(raw[2 : 2 + size])
        raw = raw[2 + size :]
    return bodies


def batch_json(raw: bytes) -> str:
    """Batches as JSON."""
    return outcome(_batch_json, raw)


def _batch_json(raw: bytes) -> None:
    batch = decode_json(raw)
    _require(holds=decode_binary(encode_binary(batch)) == batch)
    _require(holds=decode_json(encode_json(batch)) == batch)


def row_close(raw: bytes) -> str:
    """Requests to close a row."""
    return outcome(lambda body: _posted(body, lambda: parse_body(RowCloseRequest).row), raw)


def _posted(body: bytes, read: Callable[[], Any]) -> Any:
    with _FLASK.test_request_context(method="POST", data=body, content_type=JSON_TYPE):
        return read()


# -- replies ---------------------------------------------------------------------------------------


def verdicts(raw: bytes) -> str:
    """Replies to two reports."""
    return outcome(lambda body: decode_verdicts(body, REPLY_TO), raw)


def problem(raw: bytes) -> str:
    """Problem documents, of which a device reads the type."""
    reply = Reply(400, {"Content-Type": PROBLEM_TYPE}, raw)
    _require(holds=isinstance(problem_document(reply), dict))
    return f"unknown-version {is_unknown_version(reply)}"


# -- requests through a relay ----------------------------------------------------------------------


def encapsulated_request(raw: bytes) -> str:
    """Encapsulated requests under the key of RFC 9458, appendix A."""
    return outcome(lambda sealed: open_request({1: PRIVATE}, sealed), raw)


def encapsulated_response(raw: bytes) -> str:
    """Encapsulated responses to the request of RFC 9458, appendix A."""
    return outcome(EXCHANGE.open, raw)


def http_request(raw: bytes) -> str:
    """Binary HTTP requests."""
    return outcome(lambda body: _survives(Request, body), raw)


def http_response(raw: bytes) -> str:
    """Binary HTTP responses."""
    return outcome(lambda body: _survives(Response, body), raw)


def _survives(kind: type[Request | Response], raw: bytes) -> None:
    message = kind.decode(raw)
    _require(holds=kind.decode(message.encode()) == message)


def gateway_keys(raw: bytes) -> str:
    """Key files of a gateway."""
    return outcome(_gateway_keys, raw)


def _gateway_keys(raw: bytes) -> None:
    configs = decode_configs(raw)
    _require(holds=decode_configs(encode_configs(configs)) == configs)


# -- what travels by shuffler ----------------------------------------------------------------------


def relay_keys(raw: bytes) -> str:
    """Files of gateway keys that come with an app."""
    return outcome(_relay_keys, raw)


def _relay_keys(raw: bytes) -> None:
    keys = decode_key_file(raw)
    written = encode_key_file([(key.start, key.encoded) for key in keys])
    _require(holds=decode_key_file(written) == keys)


def envelope(raw: bytes) -> str:
    """Envelopes with a sealed report."""
    return outcome(lambda body: _is_written_alike(Envelope, body), raw)


def sealed_report(raw: bytes) -> str:
    """Sealed reports, under the key of RFC 9458, appendix A."""
    return outcome(lambda body: open_report({1: PRIVATE}, bytes(16), 0, body), raw)


def plain_report(raw: bytes) -> str:
    """Reports in plain, of one byte; with a token where they are as long."""
    token_bytes = TOKEN_BYTES if len(raw) == PLAIN_BYTES_WITH_TOKEN else 0
    return outcome(lambda body: _plain_report(body, token_bytes), raw)


def _plain_report(raw: bytes, token_bytes: int) -> None:
    _require(holds=PlainReport.decode(raw, 1, token_bytes).encode() == raw)


def batch_part(raw: bytes) -> str:
    """Parts of a batch."""
    return outcome(lambda body: _is_written_alike(BatchPart, body), raw)


def batch_record(raw: bytes) -> str:
    """Records of what became of a batch."""
    return outcome(lambda body: _is_written_alike(BatchRecord, body), raw)


def _is_written_alike(kind: type[Envelope | BatchPart | BatchRecord], raw: bytes) -> None:
    _require(holds=kind.decode(raw).encode() == raw)


# -- definitions -----------------------------------------------------------------------------------


def definitions(raw: bytes) -> str:
    """Definitions in TOML: what is accepted can be compiled, and read back."""
    return outcome(lambda body: _recompiled(parse_collections(_text(body), no_values_file)), raw)


def compiled(raw: bytes) -> str:
    """Compiled definitions."""
    return outcome(lambda body: _recompiled(parse_compiled(_text(body))), raw)


def _text(raw: bytes) -> str:
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DefinitionError("file", None, NOT_UTF8) from error


def _recompiled(collections: dict[str, Collection]) -> None:
    if collections:
        again = parse_compiled(compile_collections(collections.values()))
        _require(holds=_fingerprints(again) == _fingerprints(collections))


def _fingerprints(collections: dict[str, Collection]) -> dict[str, str]:
    return {name: collection.fingerprint for name, collection in collections.items()}


# -- tokens ----------------------------------------------------------------------------------------


def token_keys(raw: bytes) -> str:
    """Lists of an issuer's keys for two periods."""
    return outcome(_token_keys, raw)


def _token_keys(raw: bytes) -> None:
    keys = decode_key_list(raw)
    check_key_list(keys, REPLY_TO, digest(keys))
    _require(holds=decode_key_list(encode_key_list(keys)) == keys)


def token_request(raw: bytes) -> str:
    """Requests for tokens, up to the bytes that are to be signed."""
    return outcome(lambda body: _posted(body, _read_token_request), raw)


def _read_token_request() -> None:
    for place, slot in enumerate(issuer_app._body().requests):
        KEY.refusal(issuer_app._decode(slot.blinded, place))


def token_reply(raw: bytes) -> str:
    """Replies of an issuer with two signatures."""
    return outcome(lambda body: _signatures(body, REPLY_TO), raw)


def token_refusal(raw: bytes) -> str:
    """Refusals of an issuer, which say what it would still sign."""
    return outcome(lambda body: _left(body, {0, 1}), raw)


def token_signature(raw: bytes) -> str:
    """Blind signatures, and blinded messages, of the deterministic key of RFC 9474."""
    message, inverse = bytes.fromhex(_SIGNATURE["input_msg"]), int(_SIGNATURE["inv"], 16)
    refusal = KEY.refusal(raw) or ACCEPTED
    states = outcome(lambda signed: finalize(KEY.public, message, signed, inverse), raw)
    return f"to sign {refusal}; signed {states}; token {verify(KEY.public, message, raw)}"


TARGETS: dict[str, Target] = {
    target.__name__: target
    for target in (
        batch_binary,
        batch_group,
        batch_json,
        row_close,
        verdicts,
        problem,
        encapsulated_request,
        encapsulated_response,
        http_request,
        http_response,
        gateway_keys,
        relay_keys,
        envelope,
        sealed_report,
        plain_report,
        batch_part,
        batch_record,
        definitions,
        compiled,
        token_keys,
        token_request,
        token_reply,
        token_refusal,
        token_signature,
    )
}
#: whose inputs are text
TEXTS = TARGETS.keys() & {
    *("batch_json", "row_close", "verdicts", "problem", "definitions", "compiled"),
    *("relay_keys", "token_keys", "token_request", "token_reply", "token_refusal"),
}
