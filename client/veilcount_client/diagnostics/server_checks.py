"""What `doctor` finds of the servers: of the aggregator by a test batch, through a relay its keys
and its gateway; of a shuffler by an envelope that holds none; of the issuer by no token.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from veilcount_shared import Collection, schedule
from veilcount_shared.collection import Linkage
from veilcount_shared.diagnostic_result import DiagnosticResult
from veilcount_shared.errors import TokenError, VeilcountError
from veilcount_shared.installing import install
from veilcount_shared.oblivious_http.key_config import AES_128_GCM, KeyConfig
from veilcount_shared.oblivious_http.key_file import decode_key_file, key_for
from veilcount_shared.report import Batch, Losses
from veilcount_shared.shuffling.crowd import CROWD_BYTES
from veilcount_shared.shuffling.envelope import ENVELOPE_TYPE, Envelope
from veilcount_shared.tokens import check_key_list
from veilcount_shared.wire import JSON_TYPE, VERSION, encode_binary

from ..clock import instant
from ..delivery.issuer import HttpIssuer, IssuerUnavailable
from ..delivery.replies import EXCHANGES, describe, describe_shuffler
from ..delivery.shuffler import PATH, ShufflerTransport
from ..delivery.shuffler_route import ShufflerRoute
from ..delivery.transport import (
    OK,
    HttpTransport,
    Reply,
    in_clear,
    is_unknown_version,
    malformed,
    problem_document,
    read_relay_keys,
)
from ..settings import ClientSettings
from .problems import Collections

if TYPE_CHECKING:
    from ..delivery.relay import RelayTransport


REFUSED = frozenset({401, 403})
READ = frozenset({400, 422})  # of a request without a message: the account was looked at first


def check_tokens(
    settings: ClientSettings,
    collections: Collections,
    account: str | None,
    now: Callable[[], float],
) -> Iterator[DiagnosticResult]:
    """Yield what was found, if a collection has tokens; none is asked for."""
    token_collections = [
        collection for collection in collections.values() if collection.linkage is Linkage.TOKEN
    ]
    if not token_collections:
        return
    url = settings.issuer
    if url is None:
        message = "none: give --issuer or VEILCOUNT_ISSUER its address"
        yield DiagnosticResult("issuer", False, message)
        return
    if why := malformed(url, "issuer") or in_clear(url, "account"):
        yield DiagnosticResult("issuer", False, why)
        return
    for collection in token_collections:
        yield _keys(url, collection, now)
    yield _account(url, token_collections[0], account, now)


def _keys(url: str, collection: Collection, now: Callable[[], float]) -> DiagnosticResult:
    subject = f"issuer, {collection.name}"
    try:
        listed = HttpIssuer(url, "", now).keys(collection.fingerprint)
        check_key_list(listed, collection.periods, collection.tokens or "")
    except IssuerUnavailable as error:
        fix = "have its operator load the app's definitions file"
        return DiagnosticResult(subject, False, f"{url} answers {error}: {fix}")
    except TokenError as error:
        fix = "no token is asked for; bring the app's definitions file and the issuer's together"
        return DiagnosticResult(subject, False, f"{error}: {fix}")
    except Exception as error:  # noqa: BLE001 - whatever goes wrong on the way is the finding
        return _unreachable(subject, url, error)
    return DiagnosticResult(subject, True, f"{url} has the pinned keys of all periods")


def _account(
    url: str, collection: Collection, account: str | None, now: Callable[[], float]
) -> DiagnosticResult:
    """Return whether the issuer knows the account: a request for no token is sent under it."""
    if account is None:
        message = "not checked: give --account one, as the app gives Client(account=...)"
        return DiagnosticResult("account", True, message)
    body = json.dumps({"fingerprint": collection.fingerprint, "requests": []}).encode()
    try:
        reply = HttpTransport(url, account, now).request("POST", "/v1/tokens", body, JSON_TYPE)
    except Exception as error:  # noqa: BLE001 - likewise
        return _unreachable("account", url, error)
    if reply.status in REFUSED:
        message = "the issuer refuses it: give a token of `veilcount issuer account-token`"
        return DiagnosticResult("account", False, f"{message}, or a new one if it expired")
    if reply.status not in READ:
        message = f"{url} answers {reply.status}: try again later, or tell its operator"
        return DiagnosticResult("account", False, message)
    return DiagnosticResult("account", True, "the issuer knows it")


def _unreachable(subject: str, url: str, error: Exception) -> DiagnosticResult:
    why = f"cannot be reached ({type(error).__name__}): check the address and the network"
    return DiagnosticResult(subject, False, f"{url} {why}")


UNSERVED = Envelope(bytes(CROWD_BYTES), 0, b"").encode()  # that no shuffler serves
NOT_SERVED = 404


def check_shuffler(
    settings: ClientSettings, collections: Collections, now: Callable[[], float]
) -> Iterator[DiagnosticResult]:
    """Yield what was found, if a collection travels by shuffler; it is sent no report."""
    in_batches = [collection for collection in collections.values() if collection.batch]
    if not in_batches:
        return
    route = ShufflerRoute(settings, settings.development)
    if route.problem:
        yield DiagnosticResult("shuffler", False, route.problem)
        return
    for collection in in_batches:
        yield _key(route, collection, now())
    if route.in_clear:
        yield DiagnosticResult("shuffler", False, route.in_clear)
    else:
        yield _reply(settings, now)


def _key(route: ShufflerRoute, collection: Collection, now: float) -> DiagnosticResult:
    """Return whether the period that is running has a key."""
    period = schedule.period_at(collection, instant(now)) or 0
    first_day = schedule.period_start(collection, period).date()
    key = key_for(route.keys, first_day)
    subject = f"shuffler, {collection.name}"
    if key is None:
        message = (
            f"no key of relay_keys is for the period that begins on {first_day}, so it is not"
            " answered: ship a file whose keys begin earlier"
        )
        return DiagnosticResult(subject, False, message)
    message = (
        f"reports travel by {route.settings.shuffler_host}, sealed under key {key.config.key_id}"
    )
    return DiagnosticResult(subject, True, message)


def _reply(settings: ClientSettings, now: Callable[[], float]) -> DiagnosticResult:
    url = settings.shuffler or ""
    try:
        reply = ShufflerTransport(url, now).request("POST", PATH, UNSERVED, ENVELOPE_TYPE)
    except Exception as error:  # noqa: BLE001 - whatever goes wrong on the way is the finding
        return DiagnosticResult(
            "shuffler", False, f"{url} {describe_shuffler(type(error).__name__)}"
        )
    if reply.status == NOT_SERVED and problem_document(reply):
        return DiagnosticResult("shuffler", True, f"{url} takes envelopes")
    return DiagnosticResult("shuffler", False, f"{url} {describe_shuffler(str(reply.status))}")


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
