"""What tokens cost the intake: the same groups of bodies with and without, in one run."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from veilcount_aggregator.intake.decode.group import RequestBody
from veilcount_aggregator.intake.group_intake import IntakeRequest
from veilcount_aggregator.service import Aggregator
from veilcount_aggregator.settings import Settings
from veilcount_aggregator.store import CODES, open_store
from veilcount_client.delivery.padded_bodies import encode_padded
from veilcount_shared import Collection
from veilcount_shared.report import Batch, Report
from veilcount_shared.tokens import (
    PublicKey,
    digest,
    encode_key,
    encode_key_list,
    key_list_name,
    signed_message,
)
from veilcount_shared.verdict import Verdict
from veilcount_shared.wire import BINARY_TYPE

from .stopwatch import cpu_us
from .table import Row, Table, target

FILE = """\
app = "bench"
[bare]
{common}linkage = "none"
[tokens]
{common}answers = 1
linkage = "token"
tokens = "{pinned}"
"""
COMMON = """question = "Is it on?"
boolean = true
epsilon = 1
unit = "month"
from = {start}
until = {until}
"""
PSS = padding.PSS(padding.MGF1(hashes.SHA384()), 48)
GROUPS = (1, 32)
GOAL = 1.6  # times the same without tokens, of a group of one

NOTES = (
    "CPU time of a request of one report, without HTTP: decoded, checked, verified, committed to",
    "  SQLite (durable), in alternating groups. bytes: of the body before it is padded to 1,024.",
)


def run(*, quick: bool) -> Table:
    """Measure groups of one and of many."""
    with TemporaryDirectory() as folder:
        intake = Intake(Path(folder))
        rows = [intake.row(size, 10 if quick else 60) for size in GROUPS]
        intake.close()
    return Table("redeem: what tokens cost the intake", rows, NOTES)


class Intake:
    """An aggregator in this process, on a store of its own."""

    def __init__(self, folder: Path) -> None:
        self._signer = rsa.generate_private_key(65537, 2048)
        signers = self._signer, rsa.generate_private_key(65537, 2048)  # each period has its own
        keys = [encode_key(PublicKey(signer.public_key().public_numbers().n)) for signer in signers]
        start = datetime.now(UTC).date().replace(day=1)
        until = (start + timedelta(days=62)).replace(day=1)  # two months
        common = COMMON.format(start=start, until=until)
        file = folder / "bench.toml"
        file.write_text(FILE.format(common=common, pinned=digest(keys)))
        path = folder / key_list_name(digest(keys))
        path.parent.mkdir()
        path.write_text(encode_key_list(keys))
        url = f"sqlite:///{folder}/store.db"
        open_store(url, make=True).close()
        self._aggregator = Aggregator.open(Settings(url, (file,)))
        self._named = self._aggregator.known().catalog.by_name

    def close(self) -> None:
        """Close the store."""
        self._aggregator.close()

    def row(self, size: int, rounds: int) -> Row:
        """Return the cost of a request in groups of this size."""
        spent = {"bare": 0.0, "tokens": 0.0}
        for turn in range(rounds + 3):
            for name in spent:
                bodies = list(self._bodies(name, size))
                spent[name] += cpu_us(self._take, bodies) * (turn >= 3)
        bare, tokens = (us / rounds / size for us in spent.values())
        sizes = [len(next(self._bodies(name, 1, padded=False))) for name in spent]
        row: Row = {"requests in a group": size, "us bare": bare, "us with tokens": tokens}
        row = {**row, "times": tokens / bare, "bytes bare": sizes[0], "bytes with tokens": sizes[1]}
        return {**row, **target(tokens / bare, GOAL if size == 1 else None)}

    def _bodies(self, name: str, size: int, *, padded: bool = True) -> Iterator[bytes]:
        collection = self._named[name][0].collection
        for _ in range(size):
            batch = Batch((self._report(collection),))
            body = encode_padded(batch)
            yield body if padded else body[: len(body) - _padding(body)]

    def _report(self, collection: Collection) -> Report:
        pseudonym, token = secrets.token_bytes(16), b""
        if collection.tokens:
            message = signed_message(collection.fingerprint, 0, pseudonym)
            token = self._signer.sign(message, PSS, hashes.SHA384())
        return Report(collection.fingerprint, 0, 0, pseudonym, 0, collection.pack(0), token)

    def _take(self, bodies: Sequence[bytes]) -> None:
        requests = [
            IntakeRequest(RequestBody(BINARY_TYPE, "", body), "", "", Future()) for body in bodies
        ]
        for outcome in self._aggregator.take_group(requests):
            assert not isinstance(outcome, Exception), outcome
            assert outcome.tolist() == [CODES[Verdict.COUNTED]]


def _padding(body: bytes) -> int:
    return len(body) - len(body.rstrip(b"\0"))
