"""A token inside a sealed report is checked, and spent once in all batches of its period."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.asymmetric.padding import MGF1, PSS
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.hashes import SHA384

from veilcount_aggregator.intake.shuffled_batches.batch_checks import find_origin
from veilcount_aggregator.intake.shuffled_batches.batch_intake import BatchIntake, TakenPart
from veilcount_aggregator.intake.shuffled_batches.opening import open_part
from veilcount_aggregator.store import Cell, Store, open_store
from veilcount_analysis.series.series import Series
from veilcount_shared.collection import parse_collections
from veilcount_shared.oblivious_http.key_config import KeyConfig
from veilcount_shared.shuffling import part as parts_module
from veilcount_shared.shuffling.crowd import Crowd, sealed_size
from veilcount_shared.shuffling.part import BatchHead, BatchPart, batch_digest
from veilcount_shared.shuffling.plain_report import PLAIN_BYTES_WITH_TOKEN, PlainReport
from veilcount_shared.shuffling.sealed_report import seal_report
from veilcount_shared.tokens import PublicKey, signed_message
from veilcount_shared.tokens.blind_rsa import SALT_BYTES

from ....client.device_fixtures import definitions_text
from ....redis_server import REDIS
from ...store.engines import Empty, one_server, sqlite
from ...store.engines import memory as memory_engine
from .batch_fixtures import AFTER_GRACE

TOKENS = {"linkage": "token", "tokens": "ab" * 32, "answers": 1, "until": "2026-12-04"}
DEFINITION = definitions_text(
    "acme-editor", TOKENS, alone={"question": "Alone?", "batch": {"least": 2, "grace": 3}}
)
SIGNER = rsa.generate_private_key(65537, 2048)
KEY = PublicKey(SIGNER.public_key().public_numbers().n)
COLLECTION = parse_collections(DEFINITION, list)["alone"]
SERIES = Series(COLLECTION, token_keys=(KEY,) * COLLECTION.periods)
SIZE = sealed_size(PLAIN_BYTES_WITH_TOKEN)


@dataclass
class Sender:
    """Devices with tokens, and their batches under one gateway key."""

    store: Store
    key_id: int = 1
    secret: X25519PrivateKey = field(default_factory=X25519PrivateKey.generate)

    @property
    def config(self) -> KeyConfig:
        return KeyConfig(self.key_id, self.secret.public_key().public_bytes_raw())

    @property
    def crowd_id(self) -> bytes:
        config = self.config
        return Crowd(SERIES.fingerprint, 0, config.encode(), config.aeads[0], SIZE).crowd_id

    def seal(self, message: int, pseudonym: bytes, token: bytes) -> bytes:
        plain = PlainReport(COLLECTION.pack(message), pseudonym, token).encode()
        return seal_report(self.config, self.crowd_id, 0, plain)

    def take(self, sealed: list[bytes]) -> list[TakenPart]:
        step = parts_module.PART_REPORTS
        pieces = [b"".join(sealed[at : at + step]) for at in range(0, len(sealed), step)]
        digest = batch_digest(hashlib.sha256(piece).digest() for piece in pieces)
        head = BatchHead(bytes(16), self.crowd_id, 0, len(sealed), 0, digest, len(pieces), SIZE)
        origin = find_origin([SERIES], {self.key_id: self.secret}, self.crowd_id, 0)
        intake = BatchIntake(self.store, open_part)
        return [
            intake.take(BatchPart(head, number, piece), origin, AFTER_GRACE)
            for number, piece in enumerate(pieces)
        ]


def issued(period: int = 0) -> tuple[bytes, bytes]:
    pseudonym = secrets.token_bytes(16)
    message = signed_message(SERIES.fingerprint, period, pseudonym)
    return pseudonym, SIGNER.sign(message, PSS(MGF1(SHA384()), SALT_BYTES), SHA384())


ENGINES: dict[str, Callable[[Path], AbstractContextManager[Empty]]] = {
    "memory": memory_engine,
    "sqlite": sqlite,
    "redis": partial(one_server, REDIS),
}


@pytest.fixture(params=ENGINES)
def sender(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Sender]:
    monkeypatch.setattr(parts_module, "PART_REPORTS", 4)
    with (
        ENGINES[request.param](tmp_path) as empty,
        closing(open_store(empty(), make=True)) as store,
    ):
        yield Sender(store)


def counters(sender: Sender) -> list[int]:
    listed: list[int] = sender.store.counters(SERIES, [Cell(0, 0)]).tolist()
    return listed


def test_each_token_counts_once_and_another_never(sender: Sender) -> None:
    once, twice, forged, late = issued(), issued(), (issued()[0], issued()[1]), issued(1)
    sealed = [
        *(sender.seal(1, *token) for token in (once, twice, twice, forged)),
        *(sender.seal(0, *token) for token in (late, twice, issued())),
    ]
    for _ in range(2):  # the whole batch again
        taken = sender.take(sealed)
        assert [part.totals.accepted for part in taken] == [2, 1]
        assert [part.totals.unreadable for part in taken] == [2, 2]
        assert counters(sender) == [1, 2]

    other = Sender(sender.store, 2)  # the batch of the same period under another key
    again = other.take([other.seal(1, *once), other.seal(1, *issued())])
    assert [part.totals.accepted for part in again] == [1]
    assert counters(sender) == [1, 3]
    assert sender.store.report_counts(SERIES) == {Cell(0, 0): 4}
    assert sender.store.new_pseudonyms(SERIES) == {}


def test_planted_tokens_that_are_not_spent_count_in_two_batches(
    sender: Sender, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(BatchIntake, "_counted", lambda _self, table, _period: table.readable)
    change_batch = type(sender.store).change_batch
    monkeypatch.setattr(
        type(sender.store),
        "change_batch",
        lambda store, series, change: change_batch(
            store, series, change._replace(spent=change.spent[:0])
        ),
    )
    token = issued()
    for number in (1, 2):
        which = Sender(sender.store, number)
        which.take([which.seal(1, *token), which.seal(1, *issued())])

    assert counters(sender) == [0, 4]


def test_a_forged_report_in_front_takes_nobodys_place(sender: Sender) -> None:
    """Under a pseudonym of somebody else, without their token: both used to be dropped."""
    pseudonym, token = issued()
    forged = sender.seal(0, pseudonym, secrets.token_bytes(len(token)))
    taken = sender.take([forged, sender.seal(1, pseudonym, token), sender.seal(1, *issued())])

    assert [part.totals.accepted for part in taken] == [2]
    assert counters(sender) == [0, 2]
