"""`veilcount init`: new store, and its first admin key."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from veilcount_analysis.series.series import utc_day
from veilcount_serving.errors import SettingsError
from veilcount_shared.errors import VeilcountError

from ...records.api_keys import Role, create_key, load_api_keys
from ...records.counter_admission import require_memory
from ...records.definitions import load_catalog, read_source
from ...settings import Settings, declarations, variable_name
from ...store import Store, store_file
from . import options
from .main import SetupProblems
from .output import confirm, print_result

LABEL = "init"


@click.command("init")
@options.store
@click.option(
    "--key", "another", is_flag=True, help="Create another admin key in an existing store."
)
@click.option("--no-key", is_flag=True, help="Create no key, where output is kept: a pod's log.")
@click.option("--yes", is_flag=True, help="Create missing directories without asking.")
@options.as_json
def command(url: str | None, *, another: bool, no_key: bool, yes: bool, as_json: bool) -> None:
    """Create the store, and print its first admin key once.

    An existing store is left unchanged. All problems of the VEILCOUNT_ variables, the definitions
    that they name and the store's directory are reported at once, before anything is made. Counters
    that do not fit the limit on memory are reported before a key is.
    """
    if another and no_key:
        raise SettingsError("--no-key", "", "leave out --key, or this")
    file = store_file(options.required_url(url))
    folder = file.parent if file else None
    if problems := [*_variable_problems(), *_definition_problems(), *_folder_problems(folder)]:
        raise SetupProblems(problems)
    if folder is not None and not folder.exists() and not yes:
        _confirm_folder(folder)
    with options.opened(url, make=True) as store:
        _require_memory(store)
        facts = _init(store, another=another, no_key=no_key)
    print_result(facts, _lines(facts), as_json=as_json)


def _init(store: Store, *, another: bool, no_key: bool) -> dict[str, Any]:
    new = not load_api_keys(store).keys
    facts: dict[str, Any] = {"new": new, "engine": store.health().engine}
    if (new and not no_key) or another:
        key, secret = create_key(store, Role.ADMIN, LABEL, options.now())
        facts |= {"key": secret, "id": key.id, "role": key.role}
    return facts


def _lines(facts: dict[str, Any]) -> list[str]:
    what = "new store" if facts["new"] else "existing store"
    lines = [f"{facts['engine']}: {what}"]
    if "key" not in facts:
        command = "veilcount init" if facts["new"] else "veilcount init --key"
        return [*lines, f"no key was created: `{command}` creates one"]
    return [*lines, f"admin key, shown this once: {facts['key']}"]


def _variable_problems() -> Iterator[str]:
    return map(str, Settings.environment_problems(os.environ))


def _from_environment(name: str, default: Any) -> Any:
    text = os.environ.get(variable_name(name))
    return declarations()[name].read(text) if text else default


def _require_memory(store: Store) -> None:
    """Refuse definitions whose counters do not fit, as a server would when it starts."""
    series = [
        one_series
        for file in _from_environment("collections", ())
        for one_series in read_source(file).series()
    ]
    limit = _from_environment("max_counter_memory", None)
    require_memory(store, load_catalog(store).series, series, utc_day(options.now()), limit)


def _definition_problems() -> Iterator[str]:
    for file in _from_environment("collections", ()):
        try:
            read_source(file)
        except VeilcountError as error:
            yield str(error)


def _folder_problems(folder: Path | None) -> Iterator[str]:
    if folder is None:
        return
    nearest = next(parent for parent in (folder, *folder.parents) if parent.exists())
    if not nearest.is_dir():
        yield f"{nearest}: not a directory: give a store in another"
    elif not os.access(nearest, os.W_OK | os.X_OK):
        yield f"{nearest}: this user may not write there: `chown` it, or run as its owner"


def _confirm_folder(folder: Path) -> None:
    confirm(f"{folder}: no such directory", "Create it?", "create it, or give --yes")
