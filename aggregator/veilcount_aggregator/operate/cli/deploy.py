"""`veilcount deploy`: the configuration files of a deployment, as they are tested."""

from __future__ import annotations

from pathlib import Path

import click

from .. import deployment_files
from ..deployment_files import FILE_SETS
from . import options
from .output import print_result

FOLDER = "deploy"  # as the files name each other


@click.command("deploy")
@click.argument("kind", type=click.Choice(list(FILE_SETS)))
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path), default=FOLDER)
@click.option("--force", is_flag=True, help="Overwrite files that differ.")
@options.as_json
def command(kind: str, folder: Path, *, force: bool, as_json: bool) -> None:
    """Write the files of KIND into FOLDER (default: deploy), and print what to change in them.

    A file that is there already, and differs, is left as it is, and none is written.
    """
    file_set = FILE_SETS[kind]
    written = [str(path) for path in deployment_files.write(file_set, folder, overwrite=force)]
    heads = dict(deployment_files.instructions(file_set))
    lines = [f"{kind}: {file_set.purpose}", *(f"wrote {path}" for path in written)]
    for name, comment in heads.items():
        lines += ["", f"{folder / name}:", *(f"  {line}".rstrip() for line in comment)]
    facts = {"written": written, "instructions": heads}
    print_result(facts, lines, as_json=as_json)
