"""What issuing a token costs: a signature, and the whole request, in one run."""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from veilcount_aggregator.store import open_store
from veilcount_issuer.accounts import HmacAccountKey, SignedAccountVerifier, sign_account
from veilcount_issuer.app import create_issuer_app
from veilcount_issuer.issuer import Issuer
from veilcount_issuer.key_setup import begin_ledger, set_up_keys
from veilcount_issuer.key_vault import FolderVault
from veilcount_issuer.signing import SigningKey
from veilcount_serving.structured_logging import FaultLog
from veilcount_shared import Collection, load_collections
from veilcount_shared.tokens import SlotSecret, parse_key, verify
from veilcount_shared.wire import encode_base64

from .stopwatch import Stopwatch
from .table import Row, Table, target

FILE = """\
app = "bench"
[theme]
question = "Which theme?"
boolean = true
epsilon = 1
unit = "month"
from = {start}
until = {until}
answers = {answers}
linkage = "token"
"""
MONTHS = 12
ANSWERS = 11  # fewer than periods: those of this month came too late for it
#: microseconds of a signature, and a request's share of a token in signatures
SIGN_GOAL, REQUEST_GOAL = 2400, 1.6
PSS = padding.PSS(padding.MGF1(hashes.SHA384()), 48)

NOTES = (
    "CPU time of one token. A request: account, ledger (SQLite, durable) and JSON, over WSGI, from",
    "  fresh accounts. bytes: blinded; of a token in request and reply; in the list; in a report.",
)


def run(*, quick: bool) -> Table:
    """Measure a device's part, a signature, whole requests and a verification."""
    budget = 0.3 if quick else 2.0
    device = _device(budget)
    with TemporaryDirectory() as folder:
        issuing = list(_issuing(Path(folder), budget))
    return Table("tokens: what issuing costs", [*issuing, *device], NOTES)


def _device(budget: float) -> list[Row]:
    private = rsa.generate_private_key(65537, 2048)
    numbers = private.private_numbers()
    signer = SigningKey.from_primes(numbers.p, numbers.q, 65537, numbers.d)
    slot = SlotSecret(bytes(32), "a" * 64, 0, 0)
    blinded = slot.blind(signer.public)
    token = slot.finalize(signer.public, signer.sign(blinded.blinded))

    def check(message: bytes) -> None:
        private.public_key().verify(token, message, PSS, hashes.SHA384())

    blind = Stopwatch(slot.blind, [signer.public]).microseconds(budget)
    pure = Stopwatch(lambda message: verify(signer.public, message, token), [slot.message])
    redeem = Stopwatch(check, [slot.message])
    return [
        {"what": "device: blind", "us": blind, "bytes": len(blinded.blinded)},
        {"what": "device: verify", "us": pure.microseconds(budget)},
        {"what": "aggregator: verify", "us": redeem.microseconds(budget), "bytes": len(token)},
    ]


def _issuing(folder: Path, budget: float) -> Iterator[Row]:
    definitions = folder / "bench.toml"
    start = (datetime.now(UTC).date().replace(day=1) + timedelta(days=32)).replace(day=1)
    until = start.replace(year=start.year + 1)
    definitions.write_text(FILE.format(start=start, until=until, answers=ANSWERS))
    vault = FolderVault(folder / "keys", make=True)
    with closing(open_store(f"sqlite:///{folder}/issuer.db", make=True)) as store:
        begin_ledger(store, vault)
        list(set_up_keys(definitions, vault, start, lambda _: None))
        issuer = Issuer.open([definitions], store, vault, lambda: datetime.now(UTC))
        yield from Requests(issuer, load_collections(definitions)["theme"]).rows(budget)


class Requests:
    """Requests of fresh accounts, each for the first periods of a collection."""

    def __init__(self, issuer: Issuer, theme: Collection) -> None:
        self._key = HmacAccountKey(bytes(32))
        self._issuer = issuer
        self._theme = theme
        verifier = SignedAccountVerifier(self._key)
        app, _ = create_issuer_app(issuer, verifier, faults=FaultLog(), rate=0)
        self._web = app.test_client()
        self._listed = self._web.get(f"/v1/token-keys/{theme.fingerprint}").data
        texts = json.loads(self._listed)["keys"]
        keys = [parse_key(urlsafe_b64decode(key + "=" * (-len(key) % 4))) for key in texts]
        slots = [SlotSecret(bytes(32), theme.fingerprint, number, 0) for number in range(MONTHS)]
        self._blinded = [each.blind(key).blinded for each, key in zip(slots, keys, strict=True)]
        self._accounts = count()

    def rows(self, budget: float) -> Iterator[Row]:
        """Yield what a signature costs, and a token of a request for one and for all answers."""
        signer = self._issuer._keys[self._theme.fingerprint].find(0)
        assert signer is not None
        sign = Stopwatch(signer.sign, self._blinded[:1]).microseconds(budget)
        row: Row = {"us": sign, "times a signature": 1.0, "bytes": 256}
        yield {"what": "issuer: sign", **row, **target(sign, SIGN_GOAL)}
        for tokens in (1, ANSWERS):
            each = Stopwatch(self._ask, [tokens]).microseconds(budget) / tokens
            share = each / sign
            row = {"us": each, "times a signature": share, "bytes": self._ask(tokens)}
            goal = target(share, REQUEST_GOAL if tokens > 1 else None)
            yield {"what": f"issuer: request of {tokens}", **row, **goal}
        yield {"what": "key list, each key", "bytes": len(self._listed) // MONTHS}

    def _ask(self, tokens: int) -> int:
        """Ask for tokens; return the bytes of one, there and back."""
        requests = [
            {"period": period, "blinded": encode_base64(self._blinded[period])}
            for period in range(tokens)
        ]
        body = json.dumps({"fingerprint": self._theme.fingerprint, "requests": requests})
        expires = datetime.now(UTC) + timedelta(days=1)
        token = sign_account(self._key, f"account-{next(self._accounts)}", expires)
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        reply = self._web.post("/v1/tokens", data=body, headers=headers)
        assert reply.status_code == 200, reply.data
        return (len(body) + len(reply.data)) // tokens
