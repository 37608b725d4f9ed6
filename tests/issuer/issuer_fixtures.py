"""An issuer over a real store, asked over WSGI as a device asks it."""

from __future__ import annotations

import io
import json
from base64 import urlsafe_b64decode
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

from werkzeug.test import TestResponse

from veilcount_aggregator.store import Store
from veilcount_aggregator.store.records import update_records
from veilcount_aggregator.store.restore_lock import WHOLE_LEDGER
from veilcount_issuer.accounts import HmacAccountKey, SignedAccountVerifier, sign_account
from veilcount_issuer.app import create_issuer_app
from veilcount_issuer.issuer import Issuer
from veilcount_issuer.key_setup import KeySet, set_up_keys
from veilcount_issuer.key_vault import FolderVault, KeyVault
from veilcount_serving.structured_logging import FaultLog, configure_logging
from veilcount_shared import Collection, load_collections
from veilcount_shared.tokens import PublicKey, SlotSecret, check_key_list
from veilcount_shared.wire import encode_base64

FILE = """\
app = "acme-editor"  # the comments stay

[theme]
question = "Which theme is active?"
values = ["light", "dark", "system"]
epsilon = 1
unit = "week"
from = 2026-11-02
until = 2026-11-30
answers = 2
late = 3
linkage = "token"  # no pseudonym joins two reports

[crash]
question = "Did it crash?"
boolean = true
epsilon = 1
unit = "event"
per_day = 2
from = 2026-11-02
until = 2026-11-04
answers = 1
linkage = "token"

[plain]
question = "Which plan?"
values = ["free", "paid"]
epsilon = 1
unit = "user"
from = 2026-11-02
until = 2026-11-30
"""
TODAY = date(2026, 11, 1)
NOON = datetime(2026, 11, 1, 12, tzinfo=UTC)  # the day before the campaigns begin
BEGIN = datetime(2026, 11, 2, tzinfo=UTC)
ACCOUNT_KEY = HmacAccountKey(bytes(range(32)))


def set_up(definitions: Path, vault: KeyVault, today: date) -> list[KeySet]:
    return list(set_up_keys(definitions, vault, today, lambda _: None))


def declare_whole(store: Store) -> None:
    """Have a store's ledger lack nothing, as where the keys were made with it."""
    update_records(store, lambda: ([WHOLE_LEDGER], None))


def decode(text: str) -> bytes:
    return urlsafe_b64decode(text + "=" * (-len(text) % 4))


@dataclass
class Issuance:
    """An issuer, its clock and its log."""

    definitions: Path
    store: Store
    now: datetime = NOON
    rate: float = 0
    log: io.StringIO = field(default_factory=io.StringIO)
    url: str = ""
    origins: tuple[str, ...] = ()

    @classmethod
    def begun(cls, definitions: Path, store: Store, url: str = "", rate: float = 0) -> Issuance:
        """Open the issuer of a store in which its keys were made."""
        declare_whole(store)
        return cls(definitions, store, url=url, rate=rate)

    def __post_init__(self) -> None:
        configure_logging(self.log)
        vault = FolderVault(self.definitions.parent / "keys")
        self.collections = load_collections(self.definitions)
        self.issuer = Issuer.open([self.definitions], self.store, vault, lambda: self.now)
        app, self.metrics = create_issuer_app(
            self.issuer,
            SignedAccountVerifier(ACCOUNT_KEY),
            faults=FaultLog(),
            rate=self.rate,
            origins=self.origins,
            seconds=self._seconds,
        )
        self.web = app.test_client()

    def _seconds(self) -> float:
        return self.now.timestamp()

    @property
    def theme(self) -> Collection:
        return self.collections["theme"]

    def keys(self, collection: Collection) -> list[PublicKey]:
        reply = self.web.get(f"/v1/token-keys/{collection.fingerprint}")
        keys = [decode(text) for text in document(reply)["keys"]]
        return check_key_list(keys, collection.periods, collection.tokens or "")

    def slots(
        self, periods: Iterable[int], person: int = 0, answer: int = 0, name: str = "theme"
    ) -> list[SlotSecret]:
        fingerprint = self.collections[name].fingerprint
        return [SlotSecret(bytes([person]) * 32, fingerprint, each, answer) for each in periods]

    def requests(self, slots: Sequence[SlotSecret], name: str = "theme") -> list[dict[str, Any]]:
        keys = self.keys(self.collections[name])
        return [
            {"period": each.period, "blinded": encode_base64(each.blind(keys[each.period]).blinded)}
            for each in slots
        ]

    def ask(
        self, account: str | None, wanted: list[dict[str, Any]], name: str = "theme", **more: Any
    ) -> TestResponse:
        body = {"fingerprint": self.collections[name].fingerprint, "requests": wanted} | more
        return self.post(body, self.bearer(account) if account is not None else {})

    def post(self, body: object, headers: dict[str, str]) -> TestResponse:
        return self.web.post("/v1/tokens", json=body, headers=headers)

    def bearer(self, account: str) -> dict[str, str]:
        expires = self.now + timedelta(hours=1)
        return {"Authorization": f"Bearer {sign_account(ACCOUNT_KEY, account, expires)}"}

    def tokens(self, account: str, slots: Sequence[SlotSecret], name: str = "theme") -> list[bytes]:
        """Ask, and return finished tokens: a signature that is none raises."""
        reply = self.ask(account, self.requests(slots, name), name)
        assert reply.status_code == 200, reply.text + self.log.getvalue()
        keys = self.keys(self.collections[name])
        signed = map(decode, document(reply)["signatures"])
        return [
            each.finalize(keys[each.period], raw) for each, raw in zip(slots, signed, strict=True)
        ]


def document(reply: TestResponse) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(reply.data)
    return found


def problem(reply: TestResponse) -> str:
    assert reply.mimetype == "application/problem+json"
    return str(document(reply)["type"]).rpartition("#")[2]
