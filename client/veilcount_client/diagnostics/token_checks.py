"""What `doctor` finds of the issuer of tokens: its address, its list of keys, the account."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

from veilcount_shared import Collection
from veilcount_shared.collection import Linkage
from veilcount_shared.diagnostic_result import DiagnosticResult
from veilcount_shared.errors import TokenError
from veilcount_shared.tokens import check_key_list
from veilcount_shared.wire import JSON_TYPE

from ..delivery.issuer import HttpIssuer, IssuerUnavailable
from ..delivery.transport import HttpTransport, in_clear, malformed
from ..settings import ClientSettings
from .problems import Collections

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
