"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import click

from veilcount_shared import load_collections
from veilcount_shared.errors import VeilcountError

from ..catalog.definitions import load_catalog
from ..errors import SettingsError
from ..settings import PREFIX, Setting, Settings, declarations, option_name, variable_name
from ..store import Store, open_store
from .param_types import PROPORTION

Command = TypeVar("Command", bound=Callable[..., Any])

DEFAULTS = {each.name: each.default for each in fields(Settings)}

store = click.option(
    "--store",
    "url",
    envvar=variable_name("store"),
    metavar="URL",
    help=f"URL of the store: sqlite:////path.db, redis://... (default: {PREFIX}STORE).",
)
as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
level = click.option(
    "--level",
    type=PROPORTION,
    default="0.95",
    show_default=True,
    help="Confidence level of the intervals.",
)


class SettingType(click.ParamType[Any]):
    """The value of a setting, read as its declaration says."""

    def __init__(self, setting: Setting) -> None:
        """Read the text of this setting."""
        self.name = setting.metavar.lower()
        self._read = setting.read

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the value of a text; a default is one already."""
        try:
            return self._read(value) if isinstance(value, str) else value
        except ValueError as error:
            self.fail(f"{value!r}: {error}", param, ctx)


def setting_options(*names: str) -> Callable[[Command], Command]:
    """Add the options of these settings."""

    def add(command: Command) -> Command:
        for name in reversed(names):
            command = setting_option(name)(command)
        return command

    return add


def setting_option(name: str) -> Callable[[Command], Command]:
    """Return the option of one setting, from its declaration."""
    setting, default = declarations()[name], DEFAULTS[name]
    about: dict[str, Any] = {"envvar": variable_name(name), "help": setting.help}
    if isinstance(default, bool):
        about |= {"is_flag": True}
    elif name == "collections":
        about |= {"multiple": True, "type": click.Path(path_type=Path), "metavar": setting.metavar}
    else:
        about |= {"type": SettingType(setting), "metavar": setting.metavar}
        about |= {"default": setting.default_text or default}
        about |= {"show_default": default not in {None, ()}}
    return click.option(option_name(name), name, **about)


def required_url(url: str | None) -> str:
    """Return the store's URL, or say how to give it."""
    if not url:
        raise SettingsError("--store", "", f"give the store's URL, here or as {PREFIX}STORE")
    return url


@contextmanager
def opened(url: str | None, *, make: bool = False) -> Iterator[Store]:
    """Open a store for one command."""
    store = open_store(required_url(url), make=make)
    try:
        yield store
    finally:
        store.close()


def now() -> datetime:
    """Return the current time of a command."""
    return datetime.now(UTC)


# -- names of collections --------------------------------------------------------------------------

LOCAL_STORE = "sqlite:"  # completion must not wait for a remote store


def complete_from_file(context: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    """Complete the name of a collection in the definitions file typed before."""
    file = context.params.get("file")
    if not file:
        return []
    with suppress(VeilcountError):
        return _starting_with(incomplete, load_collections(Path(file)))
    return []


def complete_from_store(context: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    """Complete the name of a collection in a SQLite store, typed before or of the environment."""
    url = context.params.get("url") or ""
    if not url.startswith(LOCAL_STORE):
        return []
    with suppress(VeilcountError), opened(url) as store:
        return _starting_with(incomplete, load_catalog(store).by_name)
    return []


def _starting_with(prefix: str, names: Iterable[str]) -> list[str]:
    return [name for name in names if name.startswith(prefix)]


definitions_file = click.argument("file", type=click.Path(path_type=Path))
name_in_file = click.argument("name", shell_complete=complete_from_file)
name_in_store = click.argument("name", shell_complete=complete_from_store)
