"""What fuzzing showed to matter is decoded as pinned, at a bounded cost; wrong decoders fail it."""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode
from datetime import date
from fractions import Fraction
from typing import Any

import pytest

from veilcount_aggregator.intake.decode import binary_fast
from veilcount_client.delivery import issuer
from veilcount_issuer import app as issuer_app
from veilcount_shared.collection import compiled, toml
from veilcount_shared.errors import BadField, ObliviousError
from veilcount_shared.oblivious_http import binary_http, key_config
from veilcount_shared.oblivious_http.key_config import KeyConfig
from veilcount_shared.oblivious_http.key_file import RelayKey
from veilcount_shared.shuffling import batch_record, part, plain_report, sealed_report
from veilcount_shared.shuffling.envelope import Envelope
from veilcount_shared.wire import binary, json_codec

from . import targets
from .bad_inputs import FOLDER, failures, load
from .targets import TARGETS

MAX_BYTES = 150_000
MAX_ROWS = 350


@pytest.mark.parametrize("name", TARGETS)
def test_every_input_is_decoded_as_pinned_at_a_bounded_cost(name: str) -> None:
    """Lines of Python that are run, and bytes that are allocated: no time of any machine."""
    assert not list(failures(name, TARGETS[name], load(name)))


def test_every_decoder_has_a_small_file() -> None:
    files = {path.stem: path for path in FOLDER.glob("*.json")}

    assert files.keys() == TARGETS.keys()
    assert sum(path.stat().st_size for path in files.values()) < MAX_BYTES
    assert sum(len(load(name)) for name in files) < MAX_ROWS


# -- planted decoders ------------------------------------------------------------------------------


def _take_unchecked(reader: Any, size: int, _name: str = "") -> bytes:
    part: bytes = reader._body[reader._place : reader._place + size]
    reader._place += size
    return part


def _take_allocating(reader: Any, size: int) -> bytes:
    buffer = bytearray(min(size, 1 << 26))
    part: bytes = reader._raw[reader._place : reader._place + size]
    if len(part) != size:
        raise ObliviousError("message", "it is too short")
    buffer[:size] = part
    reader._place += size
    return bytes(buffer[:size])


def _unique_quadratic(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    for place, (key, _) in enumerate(pairs):
        if any(key == earlier for earlier, _ in pairs[:place]):
            raise BadField("body", "a key is repeated in one object")
    return dict(pairs)


def _any_width(raw: bytes) -> key_config.KeyConfig | None:
    head, suites = raw[:37], raw[37:]
    key_id, kem, public, _ = key_config._HEAD.unpack(head)
    aeads = tuple(aead for _, aead in key_config._SUITE.iter_unpack(suites[: len(suites) & ~3]))
    return key_config.KeyConfig(key_id, public, aeads) if kem == key_config.X25519 else None


def _unlimited_fields(reader: Any) -> Any:
    while reader._place < len(reader._raw):
        yield reader.text(), reader.text()


def _unguarded_keys(text: str | bytes) -> list[bytes]:
    return [urlsafe_b64decode(key + "==") for key in json.loads(text)["keys"]]


def _unguarded_left(content: bytes, wanted: set[int]) -> frozenset[int]:
    try:
        return frozenset(wanted - set(map(int, json.loads(content)["over"])))
    except (LookupError, TypeError, ValueError, AttributeError, RecursionError):
        raise issuer.IssuerUnavailable("409 without saying what is left") from None


class _Endless(Envelope):
    @classmethod
    def decode(cls, raw: bytes) -> Envelope:
        end = 28 + int.from_bytes(raw[26:28], "big")
        return Envelope.decode(raw[:end])


def _any_keys(text: str | bytes) -> list[RelayKey]:
    rows = json.loads(text)["keys"]
    return [RelayKey(date.min, bytes.fromhex(row["config"]), KeyConfig(0, b"")) for row in rows]


WRONG: dict[str, tuple[str, Any, str, Any]] = {
    "lengths are not checked": ("batch_binary", binary._Reader, "take_bytes", _take_unchecked),
    "bytes may follow the end": ("batch_binary", binary._Reader, "end", lambda _: None),
    "any padding": ("batch_binary", binary, "_read_padding", lambda reader: reader.end() or 0),
    "fast: any padding": ("batch_binary", binary_fast, "_ends", lambda body, end: True),
    "fast: any slot": ("batch_binary", binary_fast, "_within", lambda rows: True),
    "fast: any numbers": ("batch_binary", binary_fast, "_is_numbered", lambda rows, count: True),
    "group: any end": ("batch_group", binary_fast, "_ends", lambda body, end: True),
    "the last key counts": ("batch_json", json_codec, "_unique", dict),
    "keys compared in pairs": ("batch_json", json_codec, "_unique", _unique_quadratic),
    "any JSON": ("batch_json", json_codec, "_load", lambda body, *_: json.loads(body)),
    "a buffer of the stated length": (
        "http_request",
        binary_http._Reader,
        "_take",
        _take_allocating,
    ),
    "any number of fields": ("http_response", binary_http._Reader, "_fields", _unlimited_fields),
    "the length of suites is not read": (
        "gateway_keys",
        key_config.KeyConfig,
        "decode",
        _any_width,
    ),
    "bytes may follow an envelope": ("envelope", targets, "Envelope", _Endless),
    "any padding of a report": ("plain_report", plain_report, "MARK_BYTES", 190),
    "any numbers of a part": ("batch_part", part, "_check_numbers", lambda *_: None),
    "any state of a record": ("batch_record", batch_record, "BatchState", range(256)),
    "any file of keys": ("relay_keys", targets, "decode_key_file", _any_keys),
    "a report sealed for anything": ("sealed_report", sealed_report, "report_info", lambda *_: b""),
    "a fraction by zero": ("compiled", compiled, "_fraction", Fraction),
    "any key": ("definitions", toml, "_unknown", lambda key, known: 1 / 0),
    "an error of JSON passes": ("token_keys", targets, "decode_key_list", _unguarded_keys),
    "an infinite period": ("token_refusal", targets, "_left", _unguarded_left),
    "a key twice in a request": ("token_request", issuer_app, "_unique", dict),
    "the key's range is not checked": ("token_signature", targets, "verify", lambda *_: True),
}


@pytest.mark.parametrize("why", WRONG)
def test_a_wrong_decoder_is_rejected(why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: a decoder with one mistake fails on some input."""
    name, owner, attribute, wrong = WRONG[why]
    monkeypatch.setattr(owner, attribute, wrong)

    assert next(failures(name, TARGETS[name], load(name)), None)
