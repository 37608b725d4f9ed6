"""What fuzzing begins with: the vectors of the protocol, and input that makes a decoder work."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from itertools import pairwise

from veilcount_aggregator.intake.decode.decode import EXPLAINED_REPORTS
from veilcount_client.delivery.padded_bodies import encode_padded
from veilcount_shared.compilation import compile_collections
from veilcount_shared.oblivious_http.binary_http import Request, Response
from veilcount_shared.oblivious_http.key_config import KeyConfig
from veilcount_shared.report import Batch, Losses, Report
from veilcount_shared.shuffling.sealed_report import seal_report
from veilcount_shared.tokens.key_list import encode_key_list
from veilcount_shared.verdict import Verdict
from veilcount_shared.wire import (
    JSON_TYPE,
    encode_base64,
    encode_binary,
    encode_json,
    encode_verdicts,
)

from ..notice_definitions import COLLECTIONS, KEYS, definitions_text
from ..properties.definition_harness import CENTRAL, EVENTS, FULL, TWINS
from ..properties.test_canonical import VECTORS as DEFINITIONS
from ..properties.test_oblivious_http import ANSWER, CONFIG, EPHEMERAL, PLAIN, SEALED
from ..vectors.conformance.definitions import filled
from ..vectors.vector_files import read
from ..vectors.wire_bodies import bad_vectors, batch_of, good_vectors, text
from .targets import _SIGNATURE, TARGETS, TEXTS

SHUFFLED = read("shuffled.json")
MAX_INPUT = 20_000  # bytes
REPORT = Report("ab" * 32, 3, 1, bytes(range(16)), 2, b"\1\2")
#: JSON and TOML that is deep, long, or absurd
NUMBERS = [
    "1e999",
    "-0",
    "1e-999",
    "9" * 5_000,
    "NaN",
    "Infinity",
    "1.5",
    "true",
    "null",
    '"\\ud800"',
]
DEEP = ["[" * 5_000, '{"a":' * 3_000, "[" * 90 + "]" * 90]


_MANY_KEYS = json.dumps({f"{place:x}": 0 for place in range(200)}, separators=(",", ":")).encode()


def seeds(name: str) -> list[bytes]:
    """Return the inputs that the fuzzing of a target begins with."""
    return [seed for seed in _SEEDS[name]() if len(seed) <= MAX_INPUT]


def dictionary(name: str) -> str:
    """Return the words of a target's text that the fuzzer puts in, one a line."""
    written = b" ".join(seeds(name)).decode(errors="ignore") if name in TEXTS else ""
    words = set(re.findall(r"[A-Za-z_]{3,24}|\d{4}-\d\d-\d\d", written))
    return "".join(f'"{word}"\n' for word in sorted({*words, "1e999", "Infinity", "1/0"}))


def _bodies() -> Iterator[bytes]:
    for _, vector in good_vectors():
        yield bytes.fromhex(text(vector["body"]))
    for vector in bad_vectors():
        yield bytes.fromhex(text(vector["body"]))
    yield encode_padded(Batch((REPORT,)))
    yield encode_binary(_many_series(255))
    yield encode_binary(_many_series(255)) + b"\0"
    yield encode_binary(Batch((REPORT,) * (EXPLAINED_REPORTS + 1))) + b"\0"


def _many_series(number: int) -> Batch:
    fingerprints = [f"{place:064x}" for place in range(number)]
    return Batch(tuple(Report(name, 0, 0, bytes(16), 0, b"\0") for name in fingerprints))


def _groups() -> Iterator[bytes]:
    bodies = [body for body in _bodies() if len(body) < 500]
    for body in bodies:
        yield _prefix(body) * 2
        yield _prefix(body) + _prefix(encode_binary(Batch((REPORT,)))) * 2
    for pair in pairwise(bodies):
        yield b"".join(map(_prefix, pair))


def _prefix(body: bytes) -> bytes:
    return len(body).to_bytes(2, "big") + body


def _json_batches() -> Iterator[bytes]:
    for _, vector in good_vectors():
        yield encode_json(batch_of(vector["batch"]))
    plain = encode_json(Batch((REPORT,), padding=3)).decode()
    yield from _absurd(plain, '"period":3')
    yield encode_json(Batch(losses=Losses("ab" * 32, 1)))
    yield encode_json(_many_series(50))


def _absurd(document: str, member: str) -> Iterator[bytes]:
    """Yield a JSON document with one member replaced, and documents that are deep or long."""
    key = member.partition(":")[0]
    for value in (*NUMBERS, *DEEP, '""', "[]", "{}", "[1]", '{"a":1}', '"' + "A" * 300 + '"'):
        yield document.replace(member, f"{key}:{value}").encode()
    yield document.replace(member, f"{member},{member}").encode()
    yield document.encode("utf-16")
    yield b"\xef\xbb\xbf" + document.encode()
    yield from (value.encode() for value in (*NUMBERS, *DEEP))
    yield _MANY_KEYS


def _row_closes() -> Iterator[bytes]:
    row = {"fingerprint": "ab" * 32, "pseudonym": "A" * 22, "padding": "0"}
    yield from _absurd(json.dumps(row, separators=(",", ":")), '"padding":"0"')


def _verdicts() -> Iterator[bytes]:
    yield from (encode_verdicts([verdict, "later"]) for verdict in Verdict)
    yield from _absurd('{"verdicts":["counted","full"],"more":1}', '"more":1')
    yield from _absurd('{"verdicts":["counted","full"]}', '"verdicts":["counted","full"]')


def _problems() -> Iterator[bytes]:
    yield from _absurd('{"type":"about:blank","title":"T","status":400}', '"status":400')


def _requests() -> Iterator[bytes]:
    yield PLAIN
    yield Request("POST", "/v1/reports", (("content-type", "a/b"),), b"\1\2").encode() + bytes(90)
    yield from _long_lines(bytes.fromhex("00") + PLAIN[1:])


def _responses() -> Iterator[bytes]:
    yield Response(200, (("content-type", JSON_TYPE),), b"{}").encode() + bytes(90)
    yield from _long_lines(bytes.fromhex("0140c8"))


def _long_lines(head: bytes) -> Iterator[bytes]:
    """Yield messages of many fields, and of lengths beyond all memory."""
    yield head
    yield head + bytes.fromhex("4fa0") + b"\1a\0\0" * 1_000 + b"\0\0"
    for length in ("3f", "7fff", "bfffffff", "ffffffffffffffff", "c000000000000001"):
        yield head + bytes.fromhex(length) + b"\1a\1b"


def _sealed() -> Iterator[bytes]:
    yield SEALED
    yield SEALED[:7] + bytes(32) + SEALED[39:]  # a point of small order
    yield SEALED[:6] + b"\3" + SEALED[7:]


def _answers() -> Iterator[bytes]:
    yield from (ANSWER, ANSWER[:16], ANSWER[:15])


def _key_files() -> Iterator[bytes]:
    config = _prefix(CONFIG)
    yield from (config, config * 2, config * 100, config[:-1], b"\0\0", b"\xff\xff" + config)


def _relay_keys() -> Iterator[bytes]:
    for key_file, _ in SHUFFLED["key files"]:
        yield from _absurd(key_file, '"relay_keys": 1')
        yield from _absurd(key_file, '"from": "2026-12-01"')


def _envelopes() -> Iterator[bytes]:
    yield from (bytes.fromhex(raw) for raw, _ in SHUFFLED["envelopes"])
    yield from (bytes.fromhex(row["envelope"]) for row in SHUFFLED["reports"])


def _sealed_reports() -> Iterator[bytes]:
    config = KeyConfig.decode(CONFIG) or KeyConfig(0, b"")
    sealed = seal_report(config, bytes(16), 0, bytes(192), EPHEMERAL)
    yield from (sealed, sealed[:-1], sealed[:38], b"\2" + sealed[1:], sealed[:7] + bytes(240))
    yield from (sealed[:place] + b"\7" + sealed[place + 1 :] for place in (2, 4, 6, 8, 50, 246))


def _plain_reports() -> Iterator[bytes]:
    yield from (bytes.fromhex(raw) for raw, *_ in SHUFFLED["plain"])


def _parts() -> Iterator[bytes]:
    yield from (bytes.fromhex(raw) for raw, _ in SHUFFLED["received"])
    yield from (bytes.fromhex(row["head"]) + bytes(64) for row in SHUFFLED["parts"])


def _records() -> Iterator[bytes]:
    yield from (bytes.fromhex(raw) for raw, _ in SHUFFLED["read"])
    yield from (bytes.fromhex(row["encoded"]) for row in SHUFFLED["records"])


def _toml() -> Iterator[bytes]:
    for vector in DEFINITIONS:
        yield filled(vector, "\n".join(vector["toml"])).encode()
    for table in (definitions_text(), FULL, EVENTS, CENTRAL, *TWINS.values()):
        yield table.encode()
    for value in (*NUMBERS, "inf", "nan", "0x" + "f" * 4_000, "1_0", "2026-01-01", *DEEP):
        yield EVENTS.replace("epsilon = 1", f"epsilon = {value}").encode()
        yield f'app = "a"\n[q]\n{"a." * 300}a = {value}'.encode()


def _compiled() -> Iterator[bytes]:
    whole = [compile_collections([collection]) for collection in COLLECTIONS.values()]
    yield from (document.encode() for document in whole)
    plain = whole[0]
    for value in ("1/0", "1e9", "1e999999999", "NaN", "", "x", "-1", "0"):
        yield plain.replace(r"\"epsilon\":\"1/2\"", rf"\"epsilon\":\"{value}\"").encode()
    yield from _absurd('{"compiled":1,"collections":[]}', '"collections":[]')


def _key_lists() -> Iterator[bytes]:
    yield encode_key_list(KEYS[:2]).encode()
    yield encode_key_list(KEYS[:3]).encode()
    yield encode_key_list([KEYS[0], KEYS[1][:-1]]).encode()
    yield from _absurd('{"keys":["AA","AA"]}', '"keys":["AA","AA"]')


def _token_requests() -> Iterator[bytes]:
    blinded = encode_base64(bytes.fromhex(_SIGNATURE["blinded_msg"]))
    requests = [{"period": 1, "blinded": blinded}] * 2
    body = json.dumps({"fingerprint": "ab" * 32, "requests": requests}, separators=(",", ":"))
    yield from _absurd(body, '"period":1')
    yield body.replace(blinded, "AA").encode()


def _token_replies() -> Iterator[bytes]:
    yield from _absurd('{"signatures":["AA","AQ"]}', '"signatures":["AA","AQ"]')


def _token_refusals() -> Iterator[bytes]:
    yield from _absurd('{"over":[1]}', '"over":[1]')
    yield from (f'{{"over":[{number}]}}'.encode() for number in NUMBERS)
    left = '{"left":{"0":1,"1":2},"periods_left":1}'
    for member in ('"periods_left":1', '"left":{"0":1,"1":2}', '"1":2'):
        yield from _absurd(left, member)


def _signatures() -> Iterator[bytes]:
    yield from (bytes.fromhex(_SIGNATURE[name]) for name in ("blinded_msg", "blind_sig", "sig"))
    modulus = int(_SIGNATURE["n"], 16)
    for number in (0, 1, 2, modulus - 2, modulus - 1, modulus):
        yield number.to_bytes(512, "big")
    yield b"\xff" * 512


_SEEDS: dict[str, Callable[[], Iterator[bytes]]] = dict(
    zip(
        TARGETS,
        (
            *(_bodies, _groups, _json_batches, _row_closes, _verdicts, _problems),
            *(_sealed, _answers, _requests, _responses, _key_files),
            *(_relay_keys, _envelopes, _sealed_reports, _plain_reports, _parts, _records),
            *(_toml, _compiled),
            *(_key_lists, _token_requests, _token_replies, _token_refusals, _signatures),
        ),
        strict=True,
    )
)

_MANY_FIELDS = b"\x4f\xa2" + b"\1a\0" * 1_334
_COMPILED = (
    '{"compiled":1,"collections":[{"name":"q","canonical":'
    r'"{\"app\":\"a\",\"epsilon\":\"%s\",\"budget\":null,\"delta\":null}"}]}'
)
#: what decoders did wrong, or would, on lines that other inputs reach as well
PINNED: dict[str, list[bytes]] = {
    "batch_json": [_MANY_KEYS],
    "http_request": [PLAIN + b"\xbf\xff\xff\xff", PLAIN + _MANY_FIELDS, PLAIN + b"\2\0\0"],
    "http_response": [bytes.fromhex("0140c8") + _MANY_FIELDS],
    "compiled": [(_COMPILED % number).encode() for number in ("1/0", "1e999999999")],
    "token_refusal": [
        b'{"over":[Infinity]}',
        b'{"left":{"0":1e999},"periods_left":1}',
        b'{"left":{"0":1},"periods_left":-1e999}',
    ],
}
