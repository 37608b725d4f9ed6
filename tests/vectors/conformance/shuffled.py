"""Reports through a shuffler: keys, crowds, sealed reports, envelopes, parts, records, instants."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import date
from hashlib import sha256
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from veilcount_shared.collection import Collection
from veilcount_shared.errors import ObliviousError, WireError
from veilcount_shared.limits import PSEUDONYM_BYTES, TOKEN_BYTES
from veilcount_shared.oblivious_http.key_config import KeyConfig
from veilcount_shared.oblivious_http.key_file import (
    RelayKey,
    decode_key_file,
    encode_key_file,
    key_for,
)
from veilcount_shared.shuffling import times
from veilcount_shared.shuffling.batch_record import BatchRecord, BatchState
from veilcount_shared.shuffling.crowd import CROWD_BYTES, Crowd, sealed_size
from veilcount_shared.shuffling.envelope import Envelope
from veilcount_shared.shuffling.part import BatchHead, BatchPart, batch_digest, part_count
from veilcount_shared.shuffling.plain_report import PlainReport, plain_size
from veilcount_shared.shuffling.sealed_report import open_report, seal_report

from .definitions import parsed

Vector = dict[str, Any]


def shuffled(document: Vector) -> Vector:
    """Return the document as it is computed here."""
    collections = parsed(document["toml"])
    keys = decode_key_file("\n".join(document["key file"]))
    return document | {
        "keys": [[key.start.isoformat(), key.encoded.hex()] for key in keys],
        "key files": [[text, _is_refused(text)] for text, _ in document["key files"]],
        "chosen": [[start, _chosen(keys, start)] for start, _ in document["chosen"]],
        "crowds": [_crowd(collections, keys, each) for each in document["crowds"]],
        "reports": [
            _report(collections, document["private"], each) for each in document["reports"]
        ],
        "plain": [
            [raw, *widths, _place(_plain, raw, *widths)] for raw, *widths, _ in document["plain"]
        ],
        "envelopes": [[raw, _place(_envelope, raw)] for raw, _ in document["envelopes"]],
        "parts": [_part(document["signs"], each) for each in document["parts"]],
        "received": [[raw, _place(_received, raw)] for raw, _ in document["received"]],
        "records": [_record(document["signs"], each) for each in document["records"]],
        "read": [[raw, _place(_read, raw)] for raw, _ in document["read"]],
        "sending": [_times(collections[name], *rest[:2]) for name, *rest in document["sending"]],
    }


def _place(decode: Callable[..., object], *row: Any) -> str | None:
    """Return the place of the error that bytes are refused with; None: they are accepted."""
    try:
        decode(*row)
    except WireError as error:
        return error.place
    return None


# -- keys and crowds -------------------------------------------------------------------------------


def _is_refused(text: str) -> bool:
    try:
        decode_key_file(text)
    except ObliviousError:
        return True
    return False


def _chosen(keys: list[RelayKey], start: str) -> str | None:
    key = key_for(keys, date.fromisoformat(start))
    return key.encoded.hex() if key else None


def _token_bytes(collection: Collection) -> int:
    return TOKEN_BYTES if collection.tokens else 0


def _named(collection: Collection, period: int, encoded: bytes) -> Crowd:
    config = KeyConfig.decode(encoded)
    if config is None:
        raise AssertionError("a key that no device knows")
    size = sealed_size(plain_size(_token_bytes(collection)))
    return Crowd(collection.fingerprint, period, encoded, config.aeads[0], size)


def _crowd(collections: dict[str, Collection], keys: list[RelayKey], vector: Vector) -> Vector:
    collection, encoded = collections[vector["collection"]], keys[vector["key"]].encoded
    crowd = _named(collection, vector["period"], encoded)
    return vector | {
        "fingerprint": collection.fingerprint,
        "size": crowd.size,
        "crowd": crowd.crowd_id.hex(),
    }


# -- reports ---------------------------------------------------------------------------------------


def _report(collections: dict[str, Collection], private: str, vector: Vector) -> Vector:
    collection, period = collections[vector["collection"]], vector["period"]
    fields = {key: bytes.fromhex(vector[key]) for key in ("message", "pseudonym", "token", "mark")}
    plain = PlainReport(**fields).encode()
    encoded = bytes.fromhex(vector["config"])
    config, crowd = KeyConfig.decode(encoded), _named(collection, period, encoded).crowd_id
    ephemeral = X25519PrivateKey.from_private_bytes(bytes.fromhex(vector["ephemeral"]))
    sealed = seal_report(config or KeyConfig(0, b""), crowd, period, plain, ephemeral)
    body = Envelope(crowd, period, sealed).encode()
    keys = {encoded[0]: X25519PrivateKey.from_private_bytes(bytes.fromhex(private))}
    if open_report(keys, crowd, period, Envelope.decode(body).sealed) != plain:
        raise AssertionError("what was sealed is not what is opened")
    widths = collection.message_bytes, _token_bytes(collection)
    if PlainReport.decode(plain, *widths) != PlainReport(**fields):
        raise AssertionError("what was encoded is not what is decoded")
    return vector | {"plain": plain.hex(), "envelope": body.hex()}


def _plain(raw: str, message_bytes: int, token_bytes: int) -> None:
    PlainReport.decode(bytes.fromhex(raw), message_bytes, token_bytes)


def _envelope(raw: str) -> None:
    Envelope.decode(bytes.fromhex(raw))


# -- parts and records -----------------------------------------------------------------------------


def _sealed(head: BatchHead, number: int) -> bytes:
    """Return the sealed reports of a part, by the rule the file states."""
    start, most = number * 4096, (number + 1) * 4096
    return b"".join(bytes([i % 256]) * head.size for i in range(start, min(most, head.total)))


def _part(private: str, vector: Vector) -> Vector:
    numbers: Vector = {name: vector[name] for name in ("period", "reports", "covers", "size")}
    total = vector["reports"] + vector["covers"]
    names: Vector = {key: bytes.fromhex(vector[key]) for key in ("batch_id", "crowd_id")}
    head = BatchHead(**names, **numbers, digest=bytes(32), parts=part_count(total))
    digests = (BatchPart(head, each, _sealed(head, each)).digest for each in range(head.parts))
    head = replace(head, digest=batch_digest(digests))
    part = BatchPart(head, vector["number"], _sealed(head, vector["number"]))
    key = Ed25519PrivateKey.from_private_bytes(bytes.fromhex(private))
    part = replace(part, signature=key.sign(part.signed()))
    body = part.encode()
    if BatchPart.decode(body) != part:
        raise AssertionError("what was encoded is not what is decoded")
    return vector | {
        "head": body[: len(body) - len(part.sealed) - 64].hex(),
        "signature": part.signature.hex(),
        "sha256": sha256(body).hexdigest(),
    }


def _received(raw: str) -> None:
    BatchPart.decode(bytes.fromhex(raw))


def _record(private: str, vector: Vector) -> Vector:
    fields: Vector = {key: bytes.fromhex(vector[key]) for key in ("crowd_id", "digest")}
    numbers: Vector = {key: vector[key] for key in ("period", "reports", "covers")}
    record = BatchRecord(BatchState[vector["state"]], **fields, **numbers)
    key = Ed25519PrivateKey.from_private_bytes(bytes.fromhex(private))
    record = replace(record, signature=key.sign(record.signed()))
    if BatchRecord.decode(record.encode()) != record:
        raise AssertionError("what was encoded is not what is decoded")
    return vector | {"encoded": record.encode().hex()}


def _read(raw: str) -> None:
    BatchRecord.decode(bytes.fromhex(raw))


# -- instants --------------------------------------------------------------------------------------


def _times(collection: Collection, secret: str, period: int) -> list[Any]:
    at = times.draw_sending_instant(bytes.fromhex(secret), collection, period)
    ends = times.grace_end(collection, period), times.hand_over_at(collection, period)
    return [collection.name, secret, period, *(each.isoformat() for each in (at, *ends))]


# -- which are pinned ------------------------------------------------------------------------------

_TOML = """
app = "acme"

[theme]
question = "Which theme?"
values = ["light", "dark", "system"]
model = "shuffled"
epsilon = 4
unit = "month"
batch = {{epsilon = 1, delta = 1e-6, covers = 142}}
from = 2026-12-01
until = 2027-12-01

[opened]
question = "Is it open?"
boolean = true
epsilon = 1
unit = "day"
batch = {{grace = 4}}
from = 2026-12-15
until = 2027-03-15

[member]
question = "Are you one?"
boolean = true
epsilon = 1
unit = "week"
answers = 3
linkage = "token"
tokens = "{digest}"
batch = {{}}
from = 2026-12-15
until = 2027-03-15
""".format(digest="ab" * 32)
_PRIVATE = X25519PrivateKey.from_private_bytes(bytes(range(1, 33)))
_PUBLIC = _PRIVATE.public_key().public_bytes_raw()
_SECRETS = bytes(range(32)).hex(), "ff" * 32
ABOUT = (
    "`toml`: definitions. `private`: a gateway's test key. `key file`: the lines of a file of keys;"
    " `keys`: what is read of it, the newest first; three have one id. `key files`: a text, and"
    " whether it is refused. `chosen`: a day on which a period begins, and the key that its reports"
    " are sealed under, null without one. `crowds`: a definition, a period, the place of a key in"
    " `keys`; the size of a sealed report and the crowd's name. `reports`: what a report says, and"
    " an ephemeral key that only a test may fix; its plain text, and the envelope with it. `plain`:"
    " bytes, the widths of message and token; the place of the error, null where they are accepted;"
    " so `envelopes`, `received` (parts), `read` (records). `parts`: sealed report i of the batch"
    " is `size` bytes of the value i mod 256; the part without them and without its signature, the"
    " signature, the SHA-256 of the whole; `signs` is the shuffler's test key. `records`: state and"
    " numbers, the bytes. `sending`: a definition, a root, a period; when its report leaves, when"
    " the grace ends, when the batch is handed over."
)


def shuffled_inputs() -> Vector:
    """Return what is pinned, without the results."""
    file = _key_file()
    keys = decode_key_file(file)
    crowds = [
        {"collection": name, "period": period, "key": key}
        for name, periods in (("theme", (0, 1, 258)), ("opened", (0, 3)), ("member", (2,)))
        for period in periods
        for key in range(len(keys))
    ]
    return {
        "about": ABOUT,
        "toml": _TOML.strip().splitlines(),
        "private": bytes(range(1, 33)).hex(),
        "signs": bytes(range(32, 64)).hex(),
        "key file": file.splitlines(),
        "keys": [],
        "key files": [[text, None] for text in _key_files(file)],
        "chosen": [
            [start, None]
            for start in ("2026-11-30", "2026-12-01", "2027-01-31", "2027-02-01", "2030-01-01")
        ],
        "crowds": crowds,
        "reports": list(_reports(keys)),
        "plain": [[*row, None] for row in _plains()],
        "envelopes": [[raw.hex(), None] for raw in _envelopes()],
        "parts": list(_parts()),
        "received": [[raw.hex(), None] for raw in _bodies()],
        "records": list(_records()),
        "read": [[raw.hex(), None] for raw in _record_bodies()],
        "sending": [
            [name, secret, period]
            for name in ("theme", "opened", "member")
            for secret in _SECRETS
            for period in range(5)
        ],
    }


def _key_file() -> str:
    other = X25519PrivateKey.from_private_bytes(bytes([9]) * 32).public_key().public_bytes_raw()
    configs = [KeyConfig(7, _PUBLIC), KeyConfig(7, other), KeyConfig(7, _PUBLIC, (3, 1))]
    days = (date(2026, 12, 1), date(2027, 2, 1), date(2027, 1, 1))
    return encode_key_file(
        [(day, config.encode()) for day, config in zip(days, configs, strict=True)]
    )


def _key_files(file: str) -> Iterator[str]:
    document = json.loads(file)
    yield file
    yield json.dumps(document | {"relay_keys": 2})
    yield json.dumps(document | {"keys": []})
    yield json.dumps({"keys": document["keys"]})
    yield json.dumps(document | {"keys": [{"from": "2026-12-01"}]})
    yield json.dumps(document | {"keys": [{"from": "yesterday", "config": "00"}]})
    yield from ("", "[]", "{", '"relay_keys"')


def _reports(keys: list[RelayKey]) -> Iterator[Vector]:
    rows = [("theme", 0, "02", 1), ("theme", 258, "00", 2), ("opened", 3, "01", 1)]
    for number, (name, period, message, place) in enumerate(rows):
        yield _row(name, period, message, keys[place], number)
    token = {"pseudonym": bytes(range(16)).hex(), "token": (bytes(range(256))).hex()}
    yield _row("member", 2, "01", keys[2], 3) | token
    yield _row("theme", 1, "03", keys[1], 4) | {"mark": bytes(range(16, 32)).hex()}


def _row(name: str, period: int, message: str, key: RelayKey, number: int) -> Vector:
    return {
        "collection": name,
        "period": period,
        "config": key.encoded.hex(),
        "message": message,
        "pseudonym": "",
        "token": "",
        "mark": bytes(16).hex(),
        "ephemeral": (bytes([number + 1]) * 32).hex(),
    }


def _plains() -> Iterator[tuple[str, int, int]]:
    good = PlainReport(b"\1").encode()
    token = PlainReport(b"\1", bytes(PSEUDONYM_BYTES), bytes(TOKEN_BYTES)).encode()
    yield good.hex(), 1, 0
    yield good.hex(), 1, TOKEN_BYTES
    yield token.hex(), 1, TOKEN_BYTES
    yield token.hex(), 1, 0
    yield from ((raw.hex(), 1, 0) for raw in (b"", good[:-1], good + b"\0", b"\2" + good[1:]))
    for place in (1, 2, 100, 175, 176, 191):
        yield (good[:place] + b"\7" + good[place + 1 :]).hex(), 1, 0


def _envelopes() -> Iterator[bytes]:
    good = Envelope(bytes(range(CROWD_BYTES)), 258, bytes(range(20))).encode()
    yield from (good, good[:-1], good + b"\0", good[:27], b"", b"VS" + good[2:])
    for place, value in ((2, 2), (3, 1), (25, 1), (26, 4), (27, 19), (20, 255)):
        yield good[:place] + bytes([value]) + good[place + 1 :]
    yield Envelope(bytes(CROWD_BYTES), 0, bytes(1024)).encode()[:28]
    yield Envelope(bytes(CROWD_BYTES), (1 << 32) - 1, b"").encode()


def _parts() -> Iterator[Vector]:
    for reports, covers, size, numbers in ((1000, 142, 247, (0,)), (8000, 192, 3, (0, 1))):
        for number in numbers:
            yield _batch(reports, covers, size, number)
    yield _batch(4096, 0, 2, 0)
    yield _batch(4096, 1, 2, 1)


def _batch(reports: int, covers: int, size: int, number: int) -> Vector:
    return {
        "batch_id": bytes(range(16)).hex(),
        "crowd_id": bytes(range(100, 116)).hex(),
        "period": 258,
        "reports": reports,
        "covers": covers,
        "size": size,
        "number": number,
    }


def _bodies() -> Iterator[bytes]:
    head = BatchHead(bytes(16), bytes(16), 1, 3, 1, bytes(32), 1, 2)
    good = BatchPart(head, 0, b"aabbccdd").encode()
    yield from (good, good[:-1], good + b"\0", good[:90], b"", b"VE" + good[2:])
    yield from (good[:place] + b"\1" + good[place + 1 :] for place in (3, 41, 43, 48, 79, 81, 83))
    yield from (good[:place] + b"\0" + good[place + 1 :] for place in (2, 83, 87, 89))
    yield from (
        good[:place] + b"\2" + good[place + 1 :] for place in (2, 43, 47, 81, 83, 87, 88, 89)
    )


def _records() -> Iterator[Vector]:
    counts = {"reports": 1000, "covers": 142, "digest": bytes(range(32)).hex()}
    for state in BatchState:
        numbers = {"reports": 0, "covers": 0, "digest": bytes(32).hex()}
        row = {"state": state.name, "crowd_id": bytes(range(16)).hex(), "period": 258}
        yield row | (counts if state is BatchState.HANDED_OVER else numbers)


def _record_bodies() -> Iterator[bytes]:
    good = BatchRecord(BatchState.LOST, bytes(range(16)), 1).encode()
    yield from (good, good[:-1], good + b"\0", b"", b"VS" + good[2:])
    for place, value in ((2, 2), (3, 0), (3, 1), (3, 2), (3, 3), (3, 5), (27, 1), (31, 1), (63, 1)):
        yield good[:place] + bytes([value]) + good[place + 1 :]
