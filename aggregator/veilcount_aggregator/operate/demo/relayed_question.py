"""One question whose reports travel over a relay, each with a token: its issuer, and every log.

The issuer has its own store, as it must: in the aggregator's, one backup would hold both sides. No
party keeps the logs that are here: the demo does, to show that none would say who reported what.
"""

from __future__ import annotations

import io
import json
import secrets
from base64 import urlsafe_b64decode
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from http import HTTPStatus
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from flask import Flask, Response, request

from veilcount_analysis.series.series import utc_day
from veilcount_issuer.accounts import HmacAccountKey, SignedAccountVerifier, sign_account
from veilcount_issuer.app import create_issuer_app
from veilcount_issuer.issuer import Issuer
from veilcount_issuer.key_setup import begin_ledger, set_up_keys
from veilcount_issuer.key_vault import StoreVault
from veilcount_serving.structured_logging import FaultLog
from veilcount_shared import Collection, load_collections
from veilcount_shared.oblivious_http.binary_http import Request
from veilcount_shared.oblivious_http.encapsulation import open_request
from veilcount_shared.report import Report
from veilcount_shared.wire import decode_binary

from ...records.gateway_keys import GatewayKey
from ...server.development_relay import RelayedExchange
from ...store import open_store
from ...web.api.gateway import PATH as GATEWAY_PATH
from .campaign import Campaign, Question

SECRET_BYTES = 32


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
        issued: list[Any] = [part for signed in self.issuer for part in signed[2:]]
        others = b"\0".join([*issued, *(exchange.body + exchange.reply for exchange in self.relay)])
        return sum(
            part in others
            for report in self.aggregator
            for part in (report.pseudonym, report.token)
        )


def _decoded(text: str) -> bytes:
    return urlsafe_b64decode(text + "=" * (-len(text) % 4))


@dataclass(frozen=True, slots=True)
class DemoIssuer:
    """An issuer with its keys, and the log that it could keep."""

    definitions: Path
    app: Flask
    logs: PartyLogs
    until: datetime  # the expiry of account tokens
    _account_key: HmacAccountKey = field(repr=False)

    @property
    def collection(self) -> Collection:
        """The question, which names the keys."""
        return load_collections(self.definitions)[Question.SHARED_POSITION]

    def account(self, number: int) -> str:
        """Return the account token of a person, as the app's backend would sign it."""
        return sign_account(self._account_key, f"account-{number}", self.until)


@contextmanager
def open_issuer(
    campaign: Campaign, folder: Path, clock: Callable[[], datetime]
) -> Iterator[DemoIssuer]:
    """Make the keys of an issuer, and open it on a store in the folder."""
    definitions = campaign.write_beta(folder)
    url = f"sqlite:///{quote(str(folder))}/issuer.db?durability=relaxed"
    with closing(open_store(url, make=True)) as store:
        vault = StoreVault(store)
        begin_ledger(store, vault)
        list(set_up_keys(definitions, vault, utc_day(clock()), lambda _: None))
        issuer = Issuer.open([definitions], store, vault, clock)
        key, logs = HmacAccountKey(secrets.token_bytes(SECRET_BYTES)), PartyLogs()
        verify = SignedAccountVerifier(key)
        app, _ = create_issuer_app(issuer, verify, faults=FaultLog(), rate=0)
        logs.observe_issuer(app, lambda token: verify(token, clock()))
        yield DemoIssuer(definitions, app, logs, campaign.ends, key)
