"""Stores that can be put back to older files, and the hosts that release from them."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from veilcount_aggregator.errors import ReleaseRefused, StoreUnavailable
from veilcount_aggregator.releases.budget_ledger import StoredRelease, load_releases
from veilcount_aggregator.releases.curator import Curator, ReleaseResult
from veilcount_aggregator.releases.journal_state import JournalState, StateFile
from veilcount_aggregator.releases.privacy_filter import PrivacyFilter
from veilcount_aggregator.releases.release_journal import ReleaseJournal
from veilcount_aggregator.store import Store, open_store
from veilcount_aggregator.store.acknowledged import ENDING

from ..redis_cluster import RedisCluster
from ..redis_server import RedisServer
from .curator_fixtures import AGE, OVER, PERIODS, fill, wanted

AOF = "appendonlydir"


@dataclass
class Rewindable:
    """A store whose files are saved, and put back as they were while it is down."""

    url: str
    folders: list[Path]
    names: str
    stop: Callable[[], None]
    start: Callable[[], None]
    opened: list[Store] = field(default_factory=list)

    def open(self, *, make: bool = False) -> Store:
        """Return the store as one more process opens it."""
        self.opened.append(open_store(self.url, make=make))
        return self.opened[-1]

    def restart(self) -> None:
        self._while_down(lambda _: None)

    def save(self) -> None:
        self._while_down(self._save)

    def rewind(self) -> None:
        """Put older files back, and accept them as an operator does who wants them."""
        self._while_down(self._put_back)
        self.open().accept_losses(OVER)

    def close(self) -> None:
        for store in self.opened:
            store.close()
        self.opened.clear()

    def _while_down(self, do: Callable[[Path], None]) -> None:
        self.stop()
        for folder in self.folders:
            do(folder)
        self.start()

    def _save(self, folder: Path) -> None:
        saved = folder / "saved"
        shutil.rmtree(saved, ignore_errors=True)
        saved.mkdir()
        for file in self._files(folder):
            _copy(file, saved / file.name)

    def _files(self, folder: Path) -> list[Path]:
        """Return what an operator puts back: all but what the host has acknowledged."""
        return [path for path in folder.glob(self.names) if not path.name.endswith(ENDING)]

    def _put_back(self, folder: Path) -> None:
        for file in self._files(folder):
            shutil.rmtree(file) if file.is_dir() else file.unlink()
        for path in (folder / "saved").iterdir():
            _copy(path, folder / path.name)


def _copy(source: Path, target: Path) -> None:
    if source.is_dir():
        shutil.copytree(source, target)
    else:
        shutil.copy(source, target)


@contextmanager
def _ended(made: Rewindable) -> Iterator[Rewindable]:
    try:
        yield made
    finally:
        made.close()
        made.stop()


def sqlite(folder: Path) -> AbstractContextManager[Rewindable]:
    """A file, that others may be moved to."""
    made = Rewindable(f"sqlite:///{folder}/s.db", [folder], "s.db*", lambda: None, lambda: None)
    made.stop = made.close  # its hosts are started again with it
    return _ended(made)


def redis(folder: Path) -> AbstractContextManager[Rewindable]:
    server = RedisServer(folder)
    return _ended(Rewindable(server.url, [folder], AOF, server.kill, server.start))


def redis_cluster(folder: Path) -> AbstractContextManager[Rewindable]:
    cluster = RedisCluster(folder)

    def start() -> None:
        for node in cluster.nodes:
            node.start()
        cluster.wait()

    folders = [node.folder for node in cluster.nodes]
    return _ended(Rewindable(cluster.url, folders, AOF, cluster.close, start))


REWINDABLE: dict[str, Callable[[Path], AbstractContextManager[Rewindable]]] = {
    "sqlite": sqlite,
    "redis": redis,
    "redis-cluster": redis_cluster,
}


def make(rewindable: Rewindable) -> None:
    """Make the store, with six answers in each period."""
    store = rewindable.open(make=True)
    for period in range(PERIODS):
        fill(store, AGE, [3, 2, 1, 0], period)


@dataclass
class Host:
    """One host: its own journal, and a store that it opens anew after a restart."""

    journal: Path
    rewindable: Rewindable
    settling: float = 0.0

    def __post_init__(self) -> None:
        self.start()

    def start(self) -> None:
        self.store = self.rewindable.open()
        self.filter = PrivacyFilter(self.store, ReleaseJournal(self.journal), self.settling)
        self.curator = Curator(self.filter)

    def tick(self) -> None:
        """Do what its ticker does."""
        self.filter.tick(OVER)

    def ask(self, query: object, epsilon: object = 1, period: int = 0) -> ReleaseResult:
        return self.curator.answer(AGE, wanted(query, epsilon, period), OVER, self.journal.stem)

    def refusal(self, query: object, epsilon: object = 1, period: int = 0) -> str:
        """Return the name of the error that a release ends with; "" if it is made."""
        try:
            self.ask(query, epsilon, period)
        except (ReleaseRefused, StoreUnavailable) as refused:
            return type(refused).__name__
        return ""

    def held(self) -> int:
        """Return how many releases the store has."""
        return len(load_releases(self.store))

    @property
    def state(self) -> JournalState:
        """The state of its journal, which was registered."""
        state = StateFile.for_journal(self.journal).load()
        assert state is not None
        return state

    def unlock(self, lost: Host) -> list[StoredRelease]:
        """Enter again what another host's journal remembers."""
        return PrivacyFilter(self.store, ReleaseJournal(lost.journal)).restore_missing(OVER, "cli")

    def retire(self, gone: Host, id_: str) -> list[StoredRelease]:
        """Retire a journal, with the file of a host that is gone."""
        return PrivacyFilter(self.store, ReleaseJournal(gone.journal)).retire(id_, OVER, "cli")


def hosts(rewindable: Rewindable, folder: Path, *names: str) -> list[Host]:
    """Return hosts that have all confirmed the store, as they have within seconds."""
    made = [Host(folder / f"{name}.jsonl", rewindable) for name in names]
    tick(*made)
    return made


def tick(*hosts_: Host) -> None:
    for _ in range(2):
        for host in hosts_:
            host.tick()


def start(*hosts_: Host) -> None:
    """Start the processes of these hosts again, on whatever the store has become."""
    for host in hosts_:
        host.start()
