"""A shuffler for development, next to `veilcount dev`: its crowds leave after seconds.

It is the real server with a store of its own, in a process of its own. As on devices, a question's
period has one batch: another run of `veilcount dev` begins anew.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path

from veilcount_serving.listen_address import ListenAddress
from veilcount_shared import Collection
from veilcount_shared.oblivious_http.key_file import decode_key_file
from veilcount_shuffler.disk import Disk
from veilcount_shuffler.promise_check import check_promises
from veilcount_shuffler.store_settings import PUBLIC_FILE, StoreSettings

from ..records.api_keys import Role, create_key
from ..records.gateway_keys import create_gateway_key, key_file
from ..records.shuffler_keys import ANY, trust_shuffler
from ..store import open_store

NAME = "development"
KEYS_FILE = "relay.keys"
BEGINNING = date(2000, 1, 1)  # so that the key is for periods that are running
END_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class DevelopmentShuffler:
    """A shuffler that is ready to be served."""

    folder: Path
    bind: ListenAddress
    seconds: int  # from the first report of a crowd until it leaves

    @property
    def keys(self) -> Path:
        """The file of keys for `Client(relay_keys=...)`."""
        return self.folder / KEYS_FILE

    def make(
        self, store_url: str, target: str, collections: Mapping[str, Collection], now: datetime
    ) -> None:
        """Make its store, and have the aggregator trust it."""
        in_batches = [collection for collection in collections.values() if collection.batch]
        check_promises(in_batches)
        settings = StoreSettings(self.folder / "shuffler", Disk())
        with closing(open_store(store_url, make=True)) as store:
            _, secret = create_key(store, Role.SHUFFLER, NAME, now)
            settings.make(target, secret, NAME)
            keys = key_file([create_gateway_key(store, now, BEGINNING)])
            public = (self.folder / "shuffler" / PUBLIC_FILE).read_bytes()
            trust_shuffler(store, public, ANY, now)
        self.keys.write_text(keys, encoding="utf-8")
        settings.set_keys(decode_key_file(keys), now.date())
        settings.add_collections(in_batches, now.date())

    @property
    def command(self) -> list[str]:
        """What serves it."""
        words = ["-m", "veilcount_aggregator", "shuffler", "serve", "--dev-only", "--rate", "0"]
        words += ["--grace", str(self.seconds), "--store", str(self.folder / "shuffler")]
        return [sys.executable, *words, "--bind", str(self.bind).removeprefix("http://")]

    @contextmanager
    def served(self) -> Iterator[None]:
        """Serve in a process of its own, which logs to stderr."""
        process = subprocess.Popen(self.command, stdout=sys.stderr)  # noqa: S603 - words of ours
        try:
            yield
        finally:
            process.terminate()
            try:
                process.wait(END_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
