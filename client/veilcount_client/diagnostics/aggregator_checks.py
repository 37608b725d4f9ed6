"""What `doctor` finds on the way to an aggregator by a test batch: what the reply to it means, and
through a relay its address, the keys, the relay, the gateway.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from veilcount_shared.diagnostic_result import DiagnosticResult
from veilcount_shared.errors import VeilcountError
from veilcount_shared.installing import install
from veilcount_shared.oblivious_http.key_config import AES_128_GCM, KeyConfig
from veilcount_shared.oblivious_http.key_file import decode_key_file
from veilcount_shared.report import Batch, Losses
from veilcount_shared.wire import VERSION, encode_binary

from ..delivery.replies import EXCHANGES, describe
from ..delivery.transport import (
    OK,
    Reply,
    is_unknown_version,
    malformed,
    problem_document,
    read_relay_keys,
)
from ..settings import ClientSettings

if TYPE_CHECKING:
    from ..delivery.relay import RelayTransport

INSTALL = f"cryptography is missing: {install('relay')}"
RETIRED = "the gateway does not have it, or the relay says so"
SHIP = "ship the file of `veilcount relay-keys create` with the app"


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
    if is_unknown_version(reply):
        return False, f"does not speak version {VERSION}: bring both to the same release"
    return False, describe(str(reply.status), keyed=keyed)


def check_relay(
    settings: ClientSettings, fingerprint: str, now: Callable[[], float]
) -> Iterator[DiagnosticResult]:
    """Yield what was found; the gateway is sent a test batch without a report under each key."""
    relay = settings.relay or ""
    if why := malformed(relay, "relay"):
        yield DiagnosticResult("relay", False, why)
        return
    try:
        content = read_relay_keys(settings.relay_keys)
        keys = [key.config for key in decode_key_file(content)]
    except (VeilcountError, RuntimeError) as error:
        yield DiagnosticResult("relay keys", False, _with_fix(error))
        return
    yield DiagnosticResult("relay keys", True, ", ".join(map(_described, keys)))
    try:
        from ..delivery.relay import RelayTransport  # noqa: PLC0415 - needs cryptography
    except ImportError:
        yield DiagnosticResult("relay", False, INSTALL)
        return
    transports = [RelayTransport(relay, [key], settings.key, now) for key in keys]
    body = empty_batch(fingerprint)
    answers = [_ask(transport, body, keyed=bool(settings.key)) for transport in transports]
    yield from _results(relay, keys, answers)


def _with_fix(error: Exception) -> str:
    text = str(error)
    return text if text.startswith("relay_keys") else f"{text}: {SHIP}"


def _described(config: KeyConfig) -> str:
    names = ("AES-128-GCM" if aead == AES_128_GCM else "ChaCha20-Poly1305" for aead in config.aeads)
    return f"key {config.key_id} (X25519, {', '.join(names)})"


def _ask(transport: RelayTransport, body: bytes, *, keyed: bool) -> tuple[str, bool, str]:
    """Return the kind of the reply to a request, whether it is as it should be, and what it is."""
    try:
        reply = transport.request("POST", "/v1/reports", body)
    except Exception as error:  # noqa: BLE001 - whatever goes wrong on the way is the finding
        name = type(error).__name__
        if name in EXCHANGES:
            detail = f" ({error})" if str(error) else ""
            return name, False, f"the gateway {EXCHANGES[name]}{detail}"
        return name, False, f"cannot be reached ({name}): check the address and the network"
    return "", *judge_reply(reply, keyed=keyed)


def _results(
    relay: str, keys: Sequence[KeyConfig], found: Sequence[tuple[str, bool, str]]
) -> Iterator[DiagnosticResult]:
    """Yield a line for the relay, and one for each key that was answered."""
    unknown = [kind == "KeyRetired" for kind, _, _ in found]
    other = [result for result, retired in zip(found, unknown, strict=True) if not retired]
    if other and other[0][0]:
        yield DiagnosticResult("relay", False, f"{relay}: {other[0][2]}")
        return
    yield DiagnosticResult("relay", True, f"{relay} hands requests on, and replies back")
    for config, retired in zip(keys, unknown, strict=True):
        message = f"{RETIRED}: {SHIP}" if retired else "the gateway opens requests under it"
        if retired and other:
            message = f"{RETIRED}; another one is in use"
        ok = bool(other) or not retired
        yield DiagnosticResult(f"gateway key {config.key_id}", ok, message)
    if other:
        _, ok, message = other[0]
        yield DiagnosticResult("aggregator", ok, message)
