"""Options that several commands share."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import fields
from datetime import UTC, datetime
from difflib import get_close_matches
from fractions import Fraction
from pathlib import Path
from typing import Any, TextIO, TypeVar

import click
from click.core import ParameterSource

from veilcount_analysis.packed_texts import PackedTexts
from veilcount_serving.errors import SettingsError
from veilcount_shared import Collection, load_collections
from veilcount_shared.epsilon import parse_epsilon
from veilcount_shared.errors import VeilcountError, format_value
from veilcount_shared.kinds.toml_values import MAX_ABSOLUTE

from ...records.definitions import load_catalog
from ...settings import (
    STORE,
    STORE_FILE,
    Setting,
    Settings,
    declarations,
    option_name,
    store_url,
    variable_name,
)
from ...store import Store, open_store, store_file
from ...store.store_url import has_password, read_url_file
from .development_stores import missing_store
from .main import warn

Command = TypeVar("Command", bound=Callable[..., Any])

DEFAULTS = {field_.name: field_.default for field_ in fields(Settings)}
COUNT = click.IntRange(1, 10**9 - 1)
BINDS = "host:port, [host]:port or unix:/path."


def number(text: str) -> Fraction:
    """Read an exact decimal or ratio: 0.7 is 7/10."""
    try:
        fraction = Fraction(text)
    except (ValueError, ZeroDivisionError):
        raise click.BadParameter(
            f"{format_value(text)} is not a number: write it like 0.5"
        ) from None
    if abs(fraction) >= MAX_ABSOLUTE:
        raise click.BadParameter(f"{format_value(text)} is too large")
    return fraction


def epsilon(text: str) -> Fraction:
    """Read an epsilon in the supported range."""
    try:
        return parse_epsilon(number(text))
    except VeilcountError as error:
        raise click.BadParameter(str(error)) from error


def proportion(text: str) -> Fraction:
    """Read a number between 0 and 1: a level, a delta."""
    share = number(text)
    if not 0 < share < 1:
        raise click.BadParameter(f"{text} is not between 0 and 1")
    return share


def find_collection(family: Mapping[str, Collection], wanted: str) -> Collection:
    """Return a collection by its name, or suggest the closest one."""
    if wanted not in family:
        known = list(family)
        near = get_close_matches(wanted, known, 1, cutoff=0.5)
        listed = f"its collections are {', '.join(known)}" if known else "it has none"
        meant = f"did you mean {near[0]}?" if near else listed
        raise click.BadParameter(
            f"no collection is named {format_value(wanted)}: {meant}", param_hint="NAME"
        )
    return family[wanted]


def load_collection(path: Path, wanted: str) -> Collection:
    """Return one collection of a file."""
    return find_collection(load_collections(path), wanted)


class StoreUrl(click.ParamType[str]):
    """The URL of a store, or @FILE for the one line of a file, with which no password is typed."""

    name = "URL"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Read the file, or warn of a password that other users of this machine can see."""
        if param is None or ctx is None or ctx.resilient_parsing:
            return value
        if value.startswith("@"):
            return read_url_file(value[1:], param.get_error_hint(ctx).strip("'"))
        typed = ctx.get_parameter_source(param.name or "") is ParameterSource.COMMANDLINE
        if typed and has_password(value):
            warn(ctx.info_name or "", VISIBLE_PASSWORD)
        return value


class StoreOption(click.Option):
    """An option whose default is the store of the environment."""

    def resolve_envvar_value(self, ctx: click.Context) -> str | None:
        """Return the URL that VEILCOUNT_STORE has, or the file of VEILCOUNT_STORE_FILE."""
        with suppress(SettingsError) if ctx.resilient_parsing else nullcontext():
            return store_url(os.environ) or None
        return None


VISIBLE_PASSWORD = (
    "`ps` shows this password to every user of this machine: write the URL into"
    f" a file that only you can read, and give @FILE or {STORE_FILE}=FILE; then change the password"
)
store = click.option(
    "--store",
    "url",
    cls=StoreOption,
    type=StoreUrl(),
    envvar=STORE,
    metavar="URL",
    help="URL of the store: sqlite:////path.db, redis://..., or @FILE, a file whose one line it is"
    f" (default: {STORE}, or the file {STORE_FILE}).",
)
as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
startup_json = click.option(
    "--json", "as_json", is_flag=True, help="Print the startup line as JSON."
)
level = click.option(
    "--level",
    type=proportion,
    default="0.95",
    show_default=True,
    help="Confidence level of the intervals.",
)


def bind(
    address: str, about: str = BINDS, envvar: str | None = None
) -> Callable[[Command], Command]:
    """Return the option of a server's address."""
    return click.option(
        "--bind", default=address, show_default=True, metavar="ADDRESS", help=about, envvar=envvar
    )


def collections_files(
    *, required: bool = True, envvar: str | None = None
) -> Callable[[Command], Command]:
    """Return the option of definitions files."""
    return click.option(
        "--collections",
        "files",
        type=click.Path(path_type=Path),
        multiple=True,
        required=required,
        metavar="FILE",
        envvar=envvar,
        help="Definitions file; repeatable.",
    )


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
        about |= {"type": _reader(setting), "metavar": setting.metavar}
        about |= {"default": default}
        about |= {"show_default": default not in {None, ()}}
    return click.option(option_name(name), name, **about)


def _reader(setting: Setting) -> Callable[[Any], Any]:
    """Return the parameter type of a setting: it reads a text; a default is a value already."""

    def read(value: Any) -> Any:
        try:
            return setting.read(value) if isinstance(value, str) else value
        except ValueError as error:
            raise click.BadParameter(f"{format_value(value)}: {error}") from error

    return read


def required_url(url: str | None) -> str:
    """Return the store's URL, or say how to give it."""
    if not url:
        raise missing_store(f"give the store's URL, here or as {STORE}")
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


def candidate_lines(file: TextIO) -> Sequence[str]:
    """Return the candidates of a file, one a line."""
    try:
        return PackedTexts.from_texts(line for row in file for line in row.splitlines())
    except UnicodeDecodeError as error:
        raise click.BadParameter("give a file in UTF-8", param_hint="--candidates") from error


# -- names of collections --------------------------------------------------------------------------


def complete_from_file(context: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    """Complete the name of a collection in the definitions file typed before."""
    file = context.params.get("file")
    if not file:
        return []
    with suppress(VeilcountError):
        return _starting_with(incomplete, load_collections(Path(file)))
    return []


def complete_from_store(context: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    """Complete the name of a collection in a local store, typed before or of the environment."""
    url = context.params.get("url") or ""
    with suppress(VeilcountError):
        if store_file(url):  # completion must not wait for a server
            with opened(url) as store:
                return _starting_with(incomplete, load_catalog(store).by_name)
    return []


def _starting_with(prefix: str, names: Iterable[str]) -> list[str]:
    return [name for name in names if name.startswith(prefix)]


definitions_file = click.argument("file", type=click.Path(path_type=Path))
name_in_file = click.argument("name", shell_complete=complete_from_file)
name_in_store = click.argument("name", shell_complete=complete_from_store)
