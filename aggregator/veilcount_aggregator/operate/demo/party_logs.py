"""What an issuer, a relay and an aggregator could each write down, and what their logs share.

None of them keeps such a log: the demo does, to show that none would say who reported what.
"""

from __future__ import annotations

import io
import json
from base64 import urlsafe_b64decode
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, NamedTuple
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from flask import Flask, Response, request

from veilcount_shared.oblivious_http.binary_http import Request
from veilcount_shared.oblivious_http.encapsulation import open_request
from veilcount_shared.report import Report
from veilcount_shared.wire import decode_binary

from ...records.gateway_keys import GatewayKey
from ...server.development_relay import RelayedExchange
from ...web.api.gateway import PATH as GATEWAY_PATH


class SignedSlot(NamedTuple):
    """All that an issuer has of one token."""

    account: str
    period: int
    blinded: bytes
    signature: bytes


@dataclass(slots=True)
class PartyLogs:
    """The logs of the three."""

    issuer: list[SignedSlot] = field(default_factory=list)
    relay: list[RelayedExchange] = field(default_factory=list)
    aggregator: list[Report] = field(default_factory=list)

    def observe_issuer(self, app: Flask, account_of: Callable[[str], str | None]) -> None:
        """Write down what an issuer signs, and for whom."""

        @app.after_request
        def write(response: Response) -> Response:
            if request.endpoint == "tokens" and response.status_code == HTTPStatus.OK:
                token = request.headers["Authorization"].removeprefix("Bearer ")
                requested = json.loads(request.get_data())["requests"]
                signed = json.loads(response.get_data())["signatures"]
                account = account_of(token) or ""
                for slot, signature in zip(requested, signed, strict=True):
                    blinded = _decoded(slot["blinded"])
                    entry = SignedSlot(account, slot["period"], blinded, _decoded(signature))
                    self.issuer.append(entry)
            return response

    def observe_gateway(self, app: WSGIApplication, key: GatewayKey) -> WSGIApplication:
        """Return an application that writes down what its gateway opens."""

        def observed(environ: WSGIEnvironment, start: StartResponse) -> Iterable[bytes]:
            if environ["PATH_INFO"] == GATEWAY_PATH:
                body = environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"]))
                environ["wsgi.input"] = io.BytesIO(body)
                plain, _ = open_request({key.key_id: key.secret}, body)
                self.aggregator += decode_binary(Request.decode(plain).content).reports
            return app(environ, start)

        return observed

    def in_common(self) -> int:
        """Return how many pseudonyms and tokens of reports another party's log holds, anywhere."""
        issued: list[Any] = [part for each in self.issuer for part in each[2:]]
        others = b"\0".join([*issued, *(each.body + each.reply for each in self.relay)])
        return sum(
            part in others for each in self.aggregator for part in (each.pseudonym, each.token)
        )


def _decoded(text: str) -> bytes:
    return urlsafe_b64decode(text + "=" * (-len(text) % 4))
