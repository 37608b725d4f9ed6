"""The issuer of tokens as the device sees it: key lists, and blind signatures for an account."""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from veilcount_shared.errors import TokenError
from veilcount_shared.tokens import decode_key_list
from veilcount_shared.wire import JSON_TYPE, encode_base64

from .transport import OK, HttpTransport

MAX_KEYS = 1 << 20  # bytes of a list of keys: 1,024 of them take 404 kB
CONFLICT = 409

Account = str | Callable[[], str]


class SlotToSign(NamedTuple):
    """A blinded message, and the period whose key is to sign it."""

    period: int
    blinded: bytes


class IssuerUnavailable(Exception):
    """The issuer did not reply as one: it is asked again later."""


class SlotsRefused(Exception):
    """The issuer issues nothing for these periods: the account has had its tokens, or it is late.

    Without periods, none of those requested is left to be asked for.
    """

    def __init__(self, left: frozenset[int]) -> None:
        super().__init__()
        self.left = left  # periods of which the account may have more


class TokenIssuer(Protocol):
    """Signs slots of an account."""

    def keys(self, fingerprint: str) -> list[bytes]:
        """Return the encoded public keys of a collection, one a period."""

    def sign(self, fingerprint: str, slots: Sequence[SlotToSign]) -> list[bytes]:
        """Return the signature of each blinded message, in order."""


class HttpIssuer:
    """An issuer by HTTP; the account token is asked of the app each time, and never stored."""

    def __init__(self, url: str, account: Account, now: Callable[[], float]) -> None:
        self._url, self._account, self._now = url, account, now

    def keys(self, fingerprint: str) -> list[bytes]:
        """Return the encoded public keys of a collection, one a period."""
        transport = HttpTransport(self._url, None, self._now)
        path = f"/v1/token-keys/{fingerprint}"
        reply = transport.request("GET", path, b"", JSON_TYPE, MAX_KEYS)
        if reply.status != OK:
            raise IssuerUnavailable(f"{reply.status} for its keys")
        return decode_key_list(reply.content)

    def sign(self, fingerprint: str, slots: Sequence[SlotToSign]) -> list[bytes]:
        """Return the signature of each blinded message, in order."""
        account = self._account if isinstance(self._account, str) else self._account()
        requests = [
            {"period": slot.period, "blinded": encode_base64(slot.blinded)} for slot in slots
        ]
        body = json.dumps({"fingerprint": fingerprint, "requests": requests}).encode()
        transport = HttpTransport(self._url, account, self._now)
        reply = transport.request("POST", "/v1/tokens", body, JSON_TYPE)
        if reply.status == CONFLICT:
            raise SlotsRefused(_left(reply.content, {slot.period for slot in slots}))
        if reply.status != OK:
            raise IssuerUnavailable(f"{reply.status} for tokens")
        return _signatures(reply.content, len(slots))


def _signatures(content: bytes, number: int) -> list[bytes]:
    try:
        listed = json.loads(content)["signatures"]
        signatures = [
            urlsafe_b64decode(signature + "=" * (-len(signature) % 4)) for signature in listed
        ]
    except (LookupError, TypeError, ValueError, RecursionError):
        signatures = []
    if len(signatures) != number:
        raise TokenError("signatures", f"the issuer sent {len(signatures)} for {number}")
    return signatures


def _left(content: bytes, wanted: set[int]) -> frozenset[int]:
    """Return which of the wanted periods the issuer would still sign; `over` or `left` says it."""
    try:
        problem = json.loads(content)
        if "over" in problem:
            return frozenset(wanted - set(map(int, problem["over"])))
        left = {int(period) for period, number in problem["left"].items() if int(number) > 0}
        most = max(int(problem["periods_left"]), 0)
        return frozenset(sorted(left & wanted)[:most])
    except (LookupError, TypeError, ValueError, ArithmeticError, AttributeError, RecursionError):
        raise IssuerUnavailable("409 without saying what is left") from None
