"""Settings of the aggregator. Each field of `Settings` declares one: its default, its help text and
how its text is read. `--max-new-pseudonyms` of `veilcount serve` and VEILCOUNT_MAX_NEW_PSEUDONYMS
of any other WSGI server are both derived from the field `max_new_pseudonyms`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, dataclass, field, fields
from functools import cache
from pathlib import Path
from typing import Any

from veilcount_analysis.text.number_format import parse_bytes
from veilcount_serving.errors import SettingsError
from veilcount_serving.origins import check_origins
from veilcount_shared.report import KEYLESS_BODY_PSEUDONYMS, MAX_REPORTS

from .store.acknowledged import ENDING as HEIGHTS
from .store.store_url import read_url_file

PREFIX = "VEILCOUNT_"
STORE, STORE_FILE = f"{PREFIX}STORE", f"{PREFIX}STORE_FILE"
MAX_NEW_PSEUDONYMS = 10_000_000
#: a tenth of a period's: of ten million devices a day, hardly more come in the busiest hour
MAX_NEW_PSEUDONYMS_PER_HOUR = 1_000_000
MAX_SOURCE_CLASSES = 64
MIN_ANALYSIS_MEMORY = 512  # MB; idle, a process takes more than 100 for its code
MOST_WORKERS = 1024  # more than the cores of any one machine
_SOURCE_CLASS = re.compile("[a-z0-9-]{1,20}")


@dataclass(frozen=True, slots=True)
class Setting:
    """The declaration of one setting: help text, text form, bounds."""

    help: str
    metavar: str
    read: Callable[[str], Any]
    write: Callable[[Any], str]
    check: Callable[[Any], str]


def parse_number(text: str) -> int:
    """Parse a whole number, or raise ValueError with the fix."""
    try:
        return int(text)
    except ValueError:
        raise ValueError("give a whole number") from None


def parse_labels(text: str) -> tuple[str, ...]:
    """Return the labels of a list separated by commas."""
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _between(least: int, most: int | None = None, *, zero: bool = False) -> Callable[[int], str]:
    """Return a check of a number that names the range; `zero` also allows 0, for no limit."""
    allowed = f"{least:,} to {most:,}" if most else f"{least:,} or more"
    fix = f"give {allowed}{', or 0 for no limit' if zero else ''}"

    def check(value: int) -> str:
        valid = (zero and value == 0) or (least <= value <= (most or value))
        return "" if valid else fix

    return check


def _check_bytes(size: int | None) -> str:
    return "give 1 byte or more" if size is not None and size < 1 else ""


def _check_labels(labels: tuple[str, ...]) -> str:
    """Refuse labels that could identify more than a class of networks."""
    if len(labels) > MAX_SOURCE_CLASSES:
        return f"give at most {MAX_SOURCE_CLASSES}"
    if not all(map(_SOURCE_CLASS.fullmatch, labels)):
        return "give labels of up to 20 lower-case letters, digits and -"
    return ""


def _setting(
    text: str,
    metavar: str = "N",
    *,
    default: Any = MISSING,
    read: Callable[[str], Any] = parse_number,
    write: Callable[[Any], str] = str,
    check: Callable[[Any], str] = lambda _: "",
) -> Any:
    """Return the field of a setting."""
    declared = Setting(text, metavar, read, write, check)
    return field(default=default, metadata={"setting": declared})


def _file_setting(text: str) -> Any:
    """Return the field of a setting that names a file, or none."""
    return _setting(
        text,
        "FILE",
        default=None,
        read=Path,
        write=lambda path: str(path or ""),
        check=lambda path: "" if path is None or path.name else "give a file",
    )


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of one deployment."""

    store: str = _setting(
        "URL of the store: sqlite:////path.db, redis://host:port/0, ...", "URL", read=str
    )
    collections: tuple[Path, ...] = _setting(
        "Definitions file to load at start; repeatable.",
        "FILE",
        default=(),
        read=lambda text: tuple(map(Path, text.split(os.pathsep))),
        write=lambda paths: os.pathsep.join(map(str, paths)),
    )
    dev: bool = _setting(
        "Development mode: create the store if there is none, and accept test batches.",
        default=False,
        read=lambda text: text == "1",
        write=lambda on: "1" if on else "",
    )
    max_new_pseudonyms: int = _setting(
        "New pseudonyms accepted for one period of a collection.",
        default=MAX_NEW_PSEUDONYMS,
        check=_between(1),
    )
    rate_limit: int = _setting(
        "Requests per second that one key may send to this server; 0: no limit.",
        default=0,
        check=_between(1, zero=True),
    )
    workers: int = _setting(
        "Worker processes; they share the rate limit.", default=1, check=_between(1, MOST_WORKERS)
    )
    journal: Path | None = _file_setting(  # noqa: RUF009 - a field
        "Journal of central releases, one line each (default: next to a SQLite store;"
        " required with Redis)."
    )
    max_pseudonyms_per_body: int = _setting(
        "Pseudonyms in one request body while no device key is required.",
        default=KEYLESS_BODY_PSEUDONYMS,
        check=_between(1, MAX_REPORTS),
    )
    max_new_pseudonyms_per_hour: int = _setting(
        "New pseudonyms per hour for each collection, device key and source class, over all"
        " servers of a store; 0: no limit.",
        default=MAX_NEW_PSEUDONYMS_PER_HOUR,
        check=_between(1, zero=True),
    )
    source_classes: tuple[str, ...] = _setting(
        "Labels that the proxy may send in X-Veilcount-Source-Class, separated by commas.",
        "LABELS",
        default=(),
        read=parse_labels,
        write=",".join,
        check=_check_labels,
    )
    origins: tuple[str, ...] = _setting(
        "Origins of web pages that may send reports, separated by commas; no other page may.",
        "ORIGINS",
        default=(),
        read=parse_labels,
        write=",".join,
        check=check_origins,
    )
    publish: tuple[str, ...] = _setting(
        "Collections whose figures and counters anybody may read under /public/, without a log-in,"
        " separated by commas.",
        "NAMES",
        default=(),
        read=parse_labels,
        write=",".join,
    )
    publish_key: Path | None = _file_setting(  # noqa: RUF009 - a field
        "Private key that signs published counters, a file of `veilcount publish-key`."
    )
    sign_in: Path | None = _file_setting(  # noqa: RUF009 - a field
        "File of who may open the pages by an OpenID provider or a proxy, by their groups."
    )
    proxy_request_ids: bool = _setting(
        "Take the ids of requests from the proxy's header X-Veilcount-Request-Id.",
        default=False,
        read=lambda text: text == "1",
        write=lambda on: "1" if on else "",
    )
    max_counter_memory: int | None = _setting(
        "Memory that the counters of all definitions may need: a definition that needs more is"
        " refused when it is pushed (default: 60 % of Redis's maxmemory; SQLite: no limit).",
        "SIZE",
        default=None,
        read=parse_bytes,
        write=lambda size: str(size or ""),
        check=_check_bytes,
    )
    analysis_memory: int = _setting(
        "Memory for the data of the analysis pool, in MB, half for each process; 0: no limit.",
        "MB",
        default=1024,
        check=_between(MIN_ANALYSIS_MEMORY, zero=True),
    )

    def __post_init__(self) -> None:
        for name, setting in declarations().items():
            value = getattr(self, name)
            if fix := setting.check(value):
                raise SettingsError(option_name(name), setting.write(value), fix)

    @property
    def heights(self) -> Path | None:
        """The file of what this host has acknowledged in Redis: next to the journal; None: none."""
        if self.journal is None:
            return None
        return self.journal.with_name(self.journal.name + HEIGHTS)

    @classmethod
    def from_environment(cls, environ: Mapping[str, str]) -> Settings:
        """Read the environment variables."""
        url = store_url(environ)
        if not url:
            fix = f"give the URL: sqlite:////path.db; or {STORE_FILE}, a file whose one line it is"
            raise SettingsError(STORE, "", fix)
        values: dict[str, Any] = {}
        texts = {**environ, STORE: url}
        for name, setting in declarations().items():
            if text := texts.get(variable_name(name)):
                try:
                    values[name] = setting.read(text)
                except ValueError as error:
                    raise SettingsError(variable_name(name), text, str(error)) from None
        return cls(**values)

    @staticmethod
    def environment_problems(environ: Mapping[str, str]) -> Iterator[SettingsError]:
        """Yield what is wrong with each variable on its own; a missing store is not."""
        try:
            store_url(environ)
        except SettingsError as error:
            yield error
        for name, setting in declarations().items():
            text = environ.get(variable_name(name), "")
            try:
                fix = setting.check(setting.read(text)) if text else ""
            except ValueError as error:
                fix = str(error)
            if fix:
                yield SettingsError(variable_name(name), text, fix)

    def environment(self) -> dict[str, str]:
        """Return these settings as environment variables, for worker processes."""
        variables = {
            variable_name(name): setting.write(getattr(self, name))
            for name, setting in declarations().items()
        }
        return variables | {STORE_FILE: ""}  # its URL is in VEILCOUNT_STORE now


def store_url(environ: Mapping[str, str]) -> str:
    """Return the store's URL, given itself or as a file whose one line it is; "" if neither is."""
    url, file = (environ.get(name, "") for name in (STORE, STORE_FILE))
    if url and file:
        raise SettingsError(STORE_FILE, file, f"leave out this or {STORE}: both name a store")
    return read_url_file(file, STORE_FILE) if file else url


@cache
def declarations() -> Mapping[str, Setting]:
    """Return the declaration of each setting, by the name of its field."""
    return {field_.name: field_.metadata["setting"] for field_ in fields(Settings)}


def variable_name(name: str) -> str:
    """Return the environment variable of a setting."""
    return PREFIX + name.upper()


def option_name(name: str) -> str:
    """Return the command-line option of a setting."""
    return f"--{name.replace('_', '-')}"
