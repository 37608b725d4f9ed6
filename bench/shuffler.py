"""What a shuffler costs a report: sealed, held, shuffled; beside the opening, in one run."""

from __future__ import annotations

import os
from datetime import UTC, datetime, time, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.hpke import AEAD, KDF, KEM, Suite

from veilcount_aggregator.intake.shuffled_batches.opening import SealedPart, open_part
from veilcount_aggregator.intake.shuffled_batches.report_table import read_table
from veilcount_analysis.series.series import Series
from veilcount_shared import parse_collections
from veilcount_shared.oblivious_http.key_config import KeyConfig
from veilcount_shared.oblivious_http.key_file import RelayKey
from veilcount_shared.randomness import SystemRandomSource
from veilcount_shared.shuffling.crowd import HEADER_BYTES
from veilcount_shared.shuffling.envelope import Envelope
from veilcount_shared.shuffling.part import PART_REPORTS
from veilcount_shared.shuffling.plain_report import PlainReport
from veilcount_shared.shuffling.sealed_report import report_info, seal_report
from veilcount_shuffler.crowd_states import CrowdStates
from veilcount_shuffler.crowd_store import CrowdStore
from veilcount_shuffler.disk import Disk
from veilcount_shuffler.holding import EnvelopeAnswer, Holding
from veilcount_shuffler.served_crowds import ServedCrowd, ServedCrowds, crowds_of
from veilcount_shuffler.shuffling_pass import shuffle
from veilcount_shuffler.store_settings import StoreSettings
from veilcount_shuffler.witness import Witness

from .shuffler_http import hold_over_http
from .stopwatch import Stopwatch, timed
from .table import Row, Table, target

FILE = """
app = "bench"
[theme]
question = "Which theme is active?"
values = ["light", "dark", "system"]
model = "shuffled"
presence = "hidden"
epsilon = 4
unit = "day"
batch = {{epsilon = 1, delta = 1e-6, least = 1000, covers = 142}}
from = {start}
until = {end}
"""
START = datetime.now(UTC).date() - timedelta(days=3)  # so that a server holds reports of it today
NOW = datetime.combine(START, time(3), UTC) + timedelta(days=1)
LONE, MANY = 1, 32  # reports in a group; under load there are many
#: times the library's HPKE open, which takes 37.8 us where these take 150, 50, 8, 55 and 16
SEAL, HOLD, SHUFFLE, OPEN_AND_READ, READ = 3.97, 1.32, 0.21, 1.46, 0.42
SERVE = 1.3  # an envelope, by all processes of a server
NOTES = (
    "CPU time of a report, files synced; over HTTP: of all processes, one worker, 32 connections.",
    "  times: of an HPKE open by the library, which nothing here can be faster than; the targets",
    "  are of those. Sealed reports are random bytes where nothing opens them.",
)


def run(*, quick: bool) -> Table:
    """Measure groups of one and of many, and a crowd."""
    number = 10_000 if quick else 200_000
    with TemporaryDirectory() as folder:
        bench = Crowds(Path(folder))
        seal, opening = bench.sealing(0.05 if quick else 0.5)
        opened, read = bench.opening_part(512 if quick else PART_REPORTS)
        figures: list[tuple[str, float, float | None]] = [
            ("the library's HPKE open", opening, None),
            ("device: seal", seal, SEAL),
        ]
        for size, most in ((LONE, None), (MANY, HOLD)):
            what = f"hold, {size} in a group"
            figures.append((what, bench.hold(size, 500 if quick else 5000), most))
        served = hold_over_http(bench.settings, 1 if quick else 5)
        figures.append(("hold, over HTTP", served, SERVE))
        figures.append((f"shuffle, {number:,} reports", bench.shuffle(number), SHUFFLE))
        figures.append(("aggregator: open and read", opened + read, OPEN_AND_READ))
        figures.append(("aggregator: read alone", read, READ))
    rows: list[Row] = [
        {"what": what, "us": us, "times": us / opening, **target(us / opening, most)}
        for what, us, most in figures
    ]
    return Table("shuffler: what a report costs on its way", rows, NOTES, digits=2)


class Crowds:
    """A store in this process."""

    def __init__(self, folder: Path) -> None:
        self._private = X25519PrivateKey.generate()
        config = KeyConfig(1, self._private.public_key().public_bytes_raw())
        settings = self.settings = StoreSettings(folder / "store", Disk())
        settings.make("http://127.0.0.1:1", "", "bench")
        settings.set_keys([RelayKey(START, config.encode(), config)], START)
        file = FILE.format(start=START, end=START + timedelta(days=60))
        settings.add_collections(list(parse_collections(file, _no_file).values()), START)
        states, served = CrowdStates(settings.crowds, Disk()), ServedCrowds(settings)
        witness = Witness(None, Disk())
        self._now = NOW
        self._store = CrowdStore(
            settings.crowds, served, states, witness, Disk(), lambda: self._now
        )
        self._crowds = list(crowds_of(settings))

    def sealing(self, budget: float) -> tuple[float, float]:
        """Return what it costs to seal a report, and the library to open it."""
        crowd, suite = self._crowds[0], Suite(KEM.X25519, KDF.HKDF_SHA256, AEAD.AES_128_GCM)
        plain = PlainReport(crowd.collection.pack(0)).encode()

        def seal(plain: bytes) -> bytes:
            return seal_report(crowd.config, crowd.crowd_id, crowd.period, plain)

        def opened(sealed: bytes) -> bytes:
            info = report_info(sealed[:HEADER_BYTES], crowd.crowd_id, crowd.period)
            return suite.decrypt(sealed[HEADER_BYTES:], self._private, info)

        watches = Stopwatch(seal, [plain]), Stopwatch(opened, [seal(plain)])
        return watches[0].microseconds(budget), watches[1].microseconds(budget)

    def opening_part(self, number: int) -> tuple[float, float]:
        """Return what an aggregator pays to open a report of a part, and to read and count it."""
        crowd = self._crowds[0]
        plain = PlainReport(crowd.collection.pack(0)).encode()
        sealed = (
            seal_report(crowd.config, crowd.crowd_id, crowd.period, plain) for _ in range(number)
        )
        private = self._private.private_bytes_raw()
        names = (crowd.config.key_id, private, crowd.crowd_id, crowd.period, crowd.size)
        part = SealedPart(*names, len(plain), b"".join(sealed))
        opening, opened = timed(open_part, part)
        series = Series(crowd.collection)

        def read() -> None:
            table = read_table(series, crowd.period, opened)
            assert table.counters(table.readable).sum() == number

        reading, _ = timed(read)
        return opening / number, reading / number

    def hold(self, size: int, number: int) -> float:
        """Return what a report costs in groups of this size, from its bytes on."""
        holding, crowd = Holding(self._store), self._crowds[0]
        raws = [_envelope(crowd).encode() for _ in range(number)]

        def take() -> None:
            for start in range(0, number, size):
                group = [Envelope.decode(raw) for raw in raws[start : start + size]]
                assert set(holding.hold(group)) == {EnvelopeAnswer.HELD}

        us, _ = timed(take)
        holding.close()
        return us / number

    def shuffle(self, number: int) -> float:
        """Return what a report of a crowd costs once it is sealed, covers included."""
        crowd = self._crowds[1]
        self._now = NOW + timedelta(days=1)
        holding = Holding(self._store)
        for _ in range(0, number, 1000):
            holding.hold([_envelope(crowd) for _ in range(1000)])
        holding.close()
        us, order = timed(
            shuffle, crowd, self._store.folder(crowd.crowd_id), Disk(), SystemRandomSource()
        )
        assert order.reports == number
        return us / number


def _envelope(crowd: ServedCrowd) -> Envelope:
    return Envelope(crowd.crowd_id, crowd.period, os.urandom(crowd.size))


def _no_file(name: str) -> list[str]:
    raise FileNotFoundError(name)
