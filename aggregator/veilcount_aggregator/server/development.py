"""`veilcount dev`: one worker that shows each report as it arrives and reloads edited definitions.

The intake is the one of production, and so is everything else, except that there is no analysis
process: the worker that has seen the reports answers for the pages, too.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path

from veilcount_serving.listen_address import ListenAddress
from veilcount_serving.posix import IS_POSIX
from veilcount_serving.worker_processes import Announce, StartupSummary, run_workers
from veilcount_shared import Collection
from veilcount_shared.errors import VeilcountError

from ..intake.live_reports import DEFINITIONS, DIGITS, REFUSED, SIMULATED, LiveEntry, LiveReports
from ..records.definitions import DefinitionSource, read_source
from ..settings import Settings
from .development_devices import DevelopmentDevices
from .development_threads import serve_threads
from .rsgi import RsgiApplication
from .serve import configure, load_worker, start
from .wsgi import app

POLL_SECONDS = 0.3
ACTOR = "dev"

Show = Callable[[LiveEntry], object]
Version = tuple[tuple[int, int], ...]


def serve_development(
    settings: Settings, bind: ListenAddress, announce: Announce, show: Show, *, devices: int = 0
) -> int:
    """Serve until SIGTERM or SIGINT; return the exit code.

    The worker calls `show`, and has so many simulated devices answer. Where nothing forks, this
    process is the worker.
    """
    watch = partial(_start_watching, settings.collections, show, devices)
    if not IS_POSIX:
        return _serve_here(configure(settings, bind), watch, announce)
    return run_workers(start(settings, bind), partial(_load, watch), announce, has_front=True)


def _load(watch: Callable[[], object]) -> RsgiApplication:
    watch()
    return load_worker()


def _serve_here(
    ready: StartupSummary, watch: Callable[[], Callable[[], None]], announce: Announce
) -> int:
    """Serve by threads of this process; at the end nothing of it has the store open."""
    with ExitStack() as stack:
        stack.callback(_close)
        stack.callback(watch())
        serve_threads(app, ready.bind, partial(announce, ready))
    return 0


def _close() -> None:
    if app.opened is not None:
        app.opened.close()


def _start_watching(files: Sequence[Path], show: Show, devices: int) -> Callable[[], None]:
    """Watch the files on a thread; return what ends it."""
    app.live = LiveReports(show)
    watcher, ended = DefinitionWatcher(files, _add_definitions), threading.Event()
    watched = (watcher, DevelopmentDevices(devices), app.live, ended)
    thread = threading.Thread(target=_watch, args=watched, daemon=True)
    thread.start()

    def end() -> None:
        ended.set()
        thread.join()

    return end


def _watch(
    watcher: DefinitionWatcher,
    devices: DevelopmentDevices,
    live: LiveReports,
    ended: threading.Event,
) -> None:
    while not ended.is_set():
        with suppress(VeilcountError):  # a store that cannot be opened is logged
            for name, line in devices.answer(app.open().aggregator):
                live.add(SIMULATED, line, name)
        ended.wait(POLL_SECONDS)
        for verdict, line in watcher.look():
            live.add(verdict, line)


def _add_definitions(source: DefinitionSource) -> list[Collection]:
    """Store definitions as `veilcount collections push` does, and accept their reports at once."""
    return app.open().aggregator.push(source, ACTOR)


class DefinitionWatcher:
    """Loads definition files when they change; one that is wrong is reported, and not loaded."""

    def __init__(
        self, files: Sequence[Path], load: Callable[[DefinitionSource], list[Collection]]
    ) -> None:
        """Watch files that were loaded, and the value lists they name; `load` returns the news."""
        self._load = load
        self._parts = {file: _parts(file) for file in files}
        self._versions = {file: _version(parts) for file, parts in self._parts.items()}

    def look(self) -> Iterator[tuple[str, str]]:
        """Yield for each file that changed whether it was loaded, and a line about it."""
        for file, parts in self._parts.items():
            version = _version(parts)
            if version and version != self._versions[file]:
                self._versions[file] = version
                yield self._reload(file)

    def _reload(self, file: Path) -> tuple[str, str]:
        try:
            source = read_source(file)
            new = self._load(source)
        except VeilcountError as error:
            return REFUSED, f"{file}: not loaded, what was loaded before stays in force: {error}"
        if (parts := _parts(file)) != self._parts[file]:
            self._parts[file], self._versions[file] = parts, _version(parts)
        names = ", ".join(
            f"{one_series.name} ({one_series.fingerprint[:DIGITS]})" for one_series in new
        )
        return DEFINITIONS, f"{file}: loaded; new definitions: {names or 'none'}"


def _parts(file: Path) -> tuple[Path, ...]:
    """Return a file and the value lists it names; one that cannot be read names none."""
    with suppress(VeilcountError):
        return (file, *(file.parent / name for name in read_source(file).files))
    return (file,)


def _version(parts: Sequence[Path]) -> Version:
    """Return times and sizes; nothing while an editor replaces a file."""
    try:
        statuses = [part.stat() for part in parts]
    except OSError:
        return ()
    return tuple((status.st_mtime_ns, status.st_size) for status in statuses)
