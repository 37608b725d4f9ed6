"""`veilcount publish` and `publish-key`: figures for anybody, as files of any web host."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from ...queries.publishing_key import (
    create_publishing_key,
    public_file,
    public_text,
    read_publishing_key,
)
from ...web.dashboard.layout import STYLE, asset
from ...web.dashboard.public.site_files import site_files
from . import options
from .output import print_result
from .query_source import opened_snapshot


@click.command("publish")
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@options.store
@options.setting_options("publish_key")
@options.as_json
def command(
    folder: Path, names: Sequence[str], url: str | None, publish_key: Path | None, *, as_json: bool
) -> None:
    """Write what anybody may read of each collection NAME into FOLDER, for any web host.

    Pages, JSON, CSV, Parquet, a badge and a chart, and the open counters that the figures are
    computed from, signed by the --publish-key. It is what `veilcount serve --publish` serves under
    /public/. Files of the same name are replaced.
    """
    key = None if publish_key is None else read_publishing_key(publish_key)
    with opened_snapshot(url) as snapshot:
        files = site_files(snapshot, list(dict.fromkeys(names)), asset(STYLE).body, key)
    for path, file in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(file.content)
    text = f"{len(files)} files in {folder}: open {folder / 'index.html'}"
    print_result({"folder": str(folder), "files": sorted(files)}, [text], as_json=as_json)


@click.command("publish-key")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@options.as_json
def key(file: Path, *, as_json: bool) -> None:
    """Write a new private key to FILE, and its public half to FILE.pub: publish that elsewhere."""
    try:
        text = public_text(create_publishing_key(file))
    except FileExistsError as error:
        raise click.BadParameter(f"{file} is there: give a new file", param_hint="FILE") from error
    facts = {"private": str(file), "public": str(public_file(file)), "key": text}
    lines = [
        f"the private key is in {file}, for its owner only: --publish-key",
        f"the public key is in {public_file(file)}: {text}",
    ]
    print_result(facts, lines, as_json=as_json)
