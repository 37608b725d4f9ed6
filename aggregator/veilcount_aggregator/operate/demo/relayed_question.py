"""One question whose reports travel over a relay, each with a token: its issuer and its route.

The issuer has its own store, as it must: in the aggregator's, one backup would hold both sides.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from urllib.parse import quote

from flask import Flask

from veilcount_analysis.series.series import utc_day
from veilcount_issuer.accounts import HmacAccountKey, SignedAccountVerifier, sign_account
from veilcount_issuer.app import create_issuer_app
from veilcount_issuer.issuer import Issuer
from veilcount_issuer.key_setup import begin_ledger, set_up_keys
from veilcount_issuer.key_vault import StoreVault
from veilcount_serving.structured_logging import FaultLog
from veilcount_shared import Collection, load_collections

from ...store import open_store
from .campaign import Campaign, Question
from .party_logs import PartyLogs

SECRET_BYTES = 32


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
