"""Options that the commands of an issuer share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import click

from ...settings import PREFIX
from .options import Command

FILE = click.Path(path_type=Path)


def collections(*, required: bool) -> Callable[[Command], Command]:
    """Return the option of definitions files."""
    return click.option(
        "--collections",
        "files",
        type=FILE,
        multiple=True,
        required=required,
        metavar="FILE",
        envvar=f"{PREFIX}COLLECTIONS",
        help="Definitions file; repeatable.",
    )


keys_folder = click.option(
    "--keys",
    "folder",
    type=FILE,
    metavar="FOLDER",
    envvar=f"{PREFIX}ISSUER_KEYS",
    help="Folder of the private keys (default: in the store).",
)
