"""Requests through a relay: keys, Binary HTTP, padding, encapsulation, replies."""

from __future__ import annotations

from typing import Any

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from veilcount_client.delivery.relay import padded
from veilcount_shared.errors import ObliviousError
from veilcount_shared.oblivious_http.binary_http import Request, Response
from veilcount_shared.oblivious_http.encapsulation import open_request, seal_request
from veilcount_shared.oblivious_http.key_config import KeyConfig, decode_configs, encode_configs
from veilcount_shared.wire import BINARY_TYPE

Vector = dict[str, Any]


def relay(document: Vector) -> Vector:
    """Return the document with the bytes of its requests and replies."""
    private = X25519PrivateKey.from_private_bytes(bytes.fromhex(document["private"]))
    config = decode_configs(bytes.fromhex(document["keys"]))[0]
    return document | {
        "usable": [
            [each.key_id, each.public.hex(), list(each.aeads)]
            for each in decode_configs(bytes.fromhex(document["keys"]))
        ],
        "refused": [[raw, _is_refused(raw)] for raw, _ in document["refused"]],
        "lengths": [[size, len(padded(bytes(size)))] for size, _ in document["lengths"]],
        "requests": [_exchange(config, private, each) for each in document["requests"]],
        "responses": [[raw, _response(raw)] for raw, _ in document["responses"]],
    }


def _is_refused(raw: str) -> bool:
    try:
        decode_configs(bytes.fromhex(raw))
    except ObliviousError:
        return True
    return False


def _exchange(config: KeyConfig, private: X25519PrivateKey, vector: Vector) -> Vector:
    method, path, fields, content = vector["request"]
    pairs = tuple((name, value) for name, value in fields)
    plain = Request(method, path, pairs, bytes.fromhex(content)).encode()
    ephemeral = X25519PrivateKey.from_private_bytes(bytes.fromhex(vector["ephemeral"]))
    sealed, device = seal_request(config, padded(plain), ephemeral)
    opened, gateway = open_request({config.key_id: private}, sealed)
    status, names, reply = vector["reply"]
    answer = Response(status, tuple((name, value) for name, value in names), reply.encode())
    answered = gateway.seal(answer.encode(), bytes.fromhex(vector["nonce"]))
    read = Request.decode(opened)
    if read.encode() != plain or Response.decode(device.open(answered)) != answer:
        raise AssertionError("what was sealed is not what is opened")
    return vector | {"plain": plain.hex(), "sealed": sealed.hex(), "answered": answered.hex()}


def _response(raw: str) -> Any:
    try:
        response = Response.decode(bytes.fromhex(raw))
    except ObliviousError:
        return None
    return [response.status, [list(pair) for pair in response.fields], response.content.decode()]


# -- which are pinned ------------------------------------------------------------------------------

_TYPE = [["content-type", BINARY_TYPE]]
_SIZES = (0, 1, 100, 1279, 1280, 1281, 2560, 2561, 5000, 65_536)


def relay_inputs() -> Vector:
    """Return what is pinned of requests through a relay, without the results."""
    private = X25519PrivateKey.from_private_bytes(bytes(range(1, 33)))
    public = private.public_key().public_bytes_raw()
    keys = encode_configs([KeyConfig(7, public), KeyConfig(8, bytes([9]) * 32, (3,))])
    unknown = bytes.fromhex("000900100000")  # a KEM that no device has to know
    listed = len(unknown + bytes(60)).to_bytes(2, "big") + unknown + bytes(60) + keys
    response = Response(200, (("content-type", "application/json"),), b'{"verdicts":[]}').encode()
    return {
        "about": "`private`: a gateway's test key. `keys`: its file, and `usable` of it: id, public"
        " key, AEADs in order. `refused`: other files, and whether they are. `lengths`: a request"
        " of Binary HTTP, its length with padding. `requests`: a request (method, path, fields,"
        " content), an ephemeral key that only a test may fix, the request in Binary HTTP, and"
        " padded and encapsulated; then the reply (status, fields, text) and the nonce of the"
        " gateway, and the encapsulated reply. `responses`: Binary HTTP, what is read of it; null"
        " where it is refused. All bytes in hexadecimal.",
        "private": bytes(range(1, 33)).hex(),
        "keys": listed.hex(),
        "usable": [],
        "refused": [[raw, None] for raw in ("", "00", keys[:-1].hex(), "0000", keys.hex() + "00")],
        "lengths": [[size, None] for size in _SIZES],
        "requests": [
            {
                "request": ["POST", "/v1/reports", fields, content.hex()],
                "ephemeral": (bytes([place + 1]) * 32).hex(),
                "reply": [status, [["content-type", "application/json"]], text],
                "nonce": (bytes([place + 3]) * 16).hex(),
            }
            for place, (fields, content, status, text) in enumerate(
                [
                    (_TYPE, b"VC\1" + bytes(70), 200, '{"verdicts":["counted"]}'),
                    ([*_TYPE, ["authorization", "Bearer k"]], bytes(1024), 400, "{}"),
                ]
            )
        ],
        "responses": [
            [raw.hex(), None]
            for raw in (
                *(response, response + bytes(9), response + b"\0\1", response[:-1], response[:-3]),
                *(bytes.fromhex("0140c8"), bytes.fromhex("014064"), bytes.fromhex("0340c8"), b""),
            )
        ],
    }
