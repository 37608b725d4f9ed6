"""A shuffler for tests: seals reports, makes batches of them, and signs their parts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from veilcount_aggregator.records.api_keys import Role
from veilcount_aggregator.records.gateway_keys import GatewayKey, create_gateway_key
from veilcount_aggregator.records.shuffler_keys import ANY, trust_shuffler
from veilcount_aggregator.store import Cell
from veilcount_analysis.series.series import Series
from veilcount_shared.limits import TOKEN_BYTES
from veilcount_shared.shuffling import part as parts
from veilcount_shared.shuffling.batch_record import RECORD_TYPE, BatchRecord
from veilcount_shared.shuffling.crowd import Crowd, sealed_size
from veilcount_shared.shuffling.part import PART_TYPE, BatchHead, BatchPart, batch_digest
from veilcount_shared.shuffling.plain_report import PlainReport, plain_size
from veilcount_shared.shuffling.sealed_report import seal_report

from ...web.api.deployment_fixtures import Deployment, Response

FILE = """
app = "acme-editor"

[theme]
question = "Which theme is active?"
values = ["light", "dark", "system"]
model = "shuffled"
linkage = "none"
presence = "hidden"
epsilon = 4
unit = "day"
batch = {epsilon = 1, delta = 1e-6, least = 100, covers = 142, grace = 3}
from = 2026-12-01
until = 2027-01-01

[alone]
question = "Alone?"
boolean = true
epsilon = 1
unit = "day"
linkage = "none"
batch = {least = 2, grace = 3}
from = 2026-12-01
until = 2027-01-01
"""
AFTER_GRACE = datetime(2026, 12, 5, 2, tzinfo=UTC)  # of the first day
BATCH_ID = bytes(range(16))


@dataclass
class TestShuffler:
    """The trusted shuffler of a deployment. `size`: the most reports of a part."""

    __test__ = False

    deployed: Deployment
    signer: Ed25519PrivateKey = field(default_factory=Ed25519PrivateKey.generate)
    gateway: GatewayKey = field(init=False)
    key: str = field(init=False)

    def __post_init__(self) -> None:
        store, now = self.deployed.aggregator.store, self.deployed.clocks.now
        self.gateway = create_gateway_key(store, now)
        trust_shuffler(store, self.key_file, ANY, now)
        self.key = self.deployed.key(Role.SHUFFLER)

    @property
    def key_file(self) -> str:
        public = self.signer.public_key().public_bytes_raw().hex()
        return json.dumps({"shuffler_key": 1, "name": "Example", "public": public})

    def series(self, name: str = "alone") -> Series:
        return self.deployed.series(name)

    def crowd_id(self, name: str = "alone", period: int = 0, **changed: Any) -> bytes:
        series = self.series(name)
        size = sealed_size(plain_size(TOKEN_BYTES if series.has_tokens else 0))
        config = self.gateway.config
        crowd = Crowd(series.fingerprint, period, config.encode(), config.aeads[0], size)
        return replace(crowd, **changed).crowd_id

    def seal(self, message: int, name: str = "alone", period: int = 0, **fields: Any) -> bytes:
        packed = self.series(name).collection.pack(message)
        plain = PlainReport(packed, **fields).encode()
        return self.seal_plain(plain, name, period)

    def seal_plain(self, plain: bytes, name: str = "alone", period: int = 0) -> bytes:
        return seal_report(self.gateway.config, self.crowd_id(name, period), period, plain)

    def batch(
        self, sealed: Sequence[bytes], name: str = "alone", period: int = 0, **changed: Any
    ) -> list[BatchPart]:
        """Return the signed parts of a batch; `changed` are fields of its head."""
        step, covers = parts.PART_REPORTS, self.series(name).collection.batch.covers
        pieces = [b"".join(sealed[at : at + step]) for at in range(0, len(sealed), step)]
        head = BatchHead(
            BATCH_ID,
            self.crowd_id(name, period),
            period,
            len(sealed) - covers,
            covers,
            batch_digest(BatchPart(None, 0, piece).digest for piece in pieces),
            len(pieces),
            len(sealed[0]),
        )
        head = replace(head, **changed)
        return [self.sign(BatchPart(head, at, piece)) for at, piece in enumerate(pieces)]

    def sign(self, part: Any) -> Any:
        """Return a part or a record with its signature."""
        return replace(part, signature=self.signer.sign(part.signed()))

    def send(self, part: BatchPart, **named: Any) -> Response:
        named = {"key": self.key, "kind": PART_TYPE} | named
        return self.deployed.ask("POST", "/v1/batches", part.encode(), **named)

    def send_record(self, record: BatchRecord) -> Response:
        body = record.encode()
        return self.deployed.ask("POST", "/v1/batch-records", body, key=self.key, kind=RECORD_TYPE)

    def entries(self, name: str = "alone") -> dict[str, bytes]:
        return dict(self.deployed.aggregator.store.batches(self.series(name)))

    def counters(self, name: str = "alone") -> list[int]:
        store = self.deployed.aggregator.store
        listed: list[int] = store.counters(self.series(name), [Cell(0, 0)]).tolist()
        return listed
