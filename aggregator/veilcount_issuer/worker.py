"""One worker of an issuer: opened when its store can be, and kept in order by one thread."""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from multiprocessing.util import Finalize
from pathlib import Path
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from veilcount_aggregator.store import Store, open_store
from veilcount_serving.errors import SettingsError
from veilcount_serving.origins import check_origins
from veilcount_serving.structured_logging import FaultLog, configure_logging, log_event
from veilcount_shared.errors import VeilcountError
from veilcount_shared.problem_details import PROBLEM_TYPE
from veilcount_shared.wire import JSON_TYPE

from .accounts import AccountVerifier, SignedAccountVerifier, load_verifier, read_account_key
from .app import LIVE_PATH, create_issuer_app
from .issuance_metrics import IssuanceMetrics
from .issuer import Issuer
from .key_vault import FolderVault, KeyVault, StoreVault
from .problems import refuse

FLUSH_SECONDS = 1.0
RETIRE_SECONDS = 3600.0
CLOSING = 100  # priority of the finalizer
ENDPOINT = "issuer"
HEIGHTS = ".height"  # next to the keys: how far this host has issued from a ledger in Redis


@dataclass(frozen=True, slots=True)
class IssuerSettings:
    """What an operator sets."""

    store: str
    collections: tuple[Path, ...]
    keys: Path | None = None
    account_keys: tuple[Path, ...] = ()
    account_verifier: str | None = None
    rate_limit: int = 8
    origins: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if fix := check_origins(self.origins):
            raise SettingsError("--origins", ",".join(self.origins), fix)

    def verifier(self) -> AccountVerifier:
        """Return what verifies account tokens."""
        if self.account_verifier and not self.account_keys:
            return load_verifier(self.account_verifier)
        if not self.account_keys or self.account_verifier:
            fix = "give --account-key FILE, or else --account-verifier NAME"
            raise SettingsError("--account-key", "", fix)
        return any_of([SignedAccountVerifier(read_account_key(path)) for path in self.account_keys])

    def open_store(self) -> Store:
        """Open the store, compared with what this host has issued."""
        return open_store(self.store, heights=self.keys and self.keys / HEIGHTS)

    def vault(self, store: Store, *, make: bool = False) -> KeyVault:
        """Return where the secrets are."""
        return StoreVault(store) if self.keys is None else FolderVault(self.keys, make=make)


def any_of(verifiers: Iterable[AccountVerifier]) -> AccountVerifier:
    """Return a verifier that accepts what one of several does: keys are replaced that way."""
    all_of_them = list(verifiers)

    def verify(token: str, now: datetime) -> str | None:
        accounts = [
            account for checker in all_of_them if (account := checker(token, now)) is not None
        ]
        return accounts[0] if accounts else None

    return verify


@contextmanager
def opened_issuer(
    settings: IssuerSettings, clock: Callable[[], datetime] = lambda: datetime.now(UTC)
) -> Iterator[Issuer]:
    """Open an issuer for a moment: what is wrong shows."""
    store = settings.open_store()
    try:
        settings.verifier()
        yield Issuer.open(settings.collections, store, settings.vault(store), clock)
    finally:
        store.close()


class IssuerWorker:
    """A WSGI application that opens its issuer in the process that serves."""

    def __init__(
        self, settings: IssuerSettings, seconds: Callable[[], float] = time.monotonic
    ) -> None:
        """Open nothing yet; `seconds` is a monotonic clock."""
        self._settings = settings
        self._seconds = seconds
        self._app: WSGIApplication | None = None
        self._metrics: IssuanceMetrics | None = None
        self._issuer: Issuer | None = None
        self._retire_at = seconds()
        self._is_compared = False
        self.faults = FaultLog(seconds)

    def __call__(self, environ: WSGIEnvironment, start: StartResponse) -> Iterable[bytes]:
        """Respond to one request; the liveness probe depends on no store."""
        if self._app is not None:
            return self._app(environ, start)
        if environ["PATH_INFO"] == LIVE_PATH:
            start("200 OK", [("Content-Type", JSON_TYPE)])
            return [b'{"status":"ok"}']
        problem = refuse("unavailable").problem
        start("503 Service Unavailable", [("Content-Type", PROBLEM_TYPE), *problem.headers.items()])
        return [problem.body]

    def start(self) -> None:
        """Open, if the store is there; a thread goes on with that, and keeps the worker in order.

        Not `atexit`: processes forked by `multiprocessing` end without it.
        """
        configure_logging(sys.stderr)
        self.keep_up()
        threading.Thread(target=self._run, daemon=True).start()
        Finalize(None, self._flush_last, exitpriority=CLOSING)

    def keep_up(self) -> None:
        """Open if that is due, write figures, publish and delete what is due; faults are logged.

        A fault of one step keeps no other from its turn.
        """
        self.faults.log_ended()
        for step in (self._open, self._flush, self._publish, self._retire):
            try:
                step()
            except VeilcountError as error:
                self.faults.log("store", ENDPOINT, error, reason=str(error))
            except Exception as error:  # noqa: BLE001 - the thread goes on
                self.faults.log("failed", ENDPOINT, error)

    def _run(self) -> None:
        while True:
            time.sleep(FLUSH_SECONDS)
            self.keep_up()

    def _open(self) -> None:
        if self._app is not None:
            return
        store = self._settings.open_store()
        try:
            vault, verifier = self._settings.vault(store), self._settings.verifier()
            files, rate = self._settings.collections, self._settings.rate_limit
            self._issuer = Issuer.open(files, store, vault, lambda: datetime.now(UTC))
        except BaseException:
            store.close()
            raise
        app, self._metrics = create_issuer_app(
            self._issuer, verifier, faults=self.faults, rate=rate, origins=self._settings.origins
        )
        self._app = app

    def _publish(self) -> None:
        if self._issuer is None:
            return
        self._issuer.publish()
        if not self._is_compared:  # once: an older ledger is restored before a start
            for contradiction in self._issuer.contradictions():
                log_event("contradiction", logging.ERROR, reason=contradiction)
            self._is_compared = True

    def _retire(self) -> None:
        if self._issuer is not None and self._seconds() >= self._retire_at:
            self._retire_at = self._seconds() + RETIRE_SECONDS
            self._issuer.retire()

    def _flush(self) -> None:
        if self._metrics is not None:
            self._metrics.flush()

    def _flush_last(self) -> None:
        with suppress(VeilcountError):  # figures of the last second are lost, no token
            self._flush()
