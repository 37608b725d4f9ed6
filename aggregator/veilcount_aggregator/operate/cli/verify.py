"""`veilcount verify`: published counters are checked and estimated, without a server."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from veilcount_analysis.counts import join_open_counters, read_open_counters

from ...queries import EstimateQuery, plain
from ...queries.estimate import estimate_counts
from . import options
from .estimate import print_estimate
from .output import print_json, print_lines
from .query_source import struct_options


@click.command("verify")
@click.argument(
    "files", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="FILE..."
)
@click.option(
    "--key",
    metavar="KEY",
    help="The publisher's public key, from where you trust: its file, or its 43 characters.",
)
@click.option("--unsigned", is_flag=True, help="Do not check who signed the counters.")
@struct_options(EstimateQuery, omit={"candidates", "discover"})
@click.option(
    "--show-anyway", is_flag=True, help="Print figures of too few reports, which are noise."
)
@options.as_json
def command(
    *,
    files: Sequence[Path],
    key: str | None,
    unsigned: bool,
    params: dict[str, list[str]],
    show_anyway: bool,
    as_json: bool,
) -> None:
    """Check the open counters of each FILE, and estimate from all of them together.

    Every file must be signed by the --key, and what it states must follow from its definition and
    its counters. The figures are then computed here: compare them with those that were published.
    """
    if unsigned == (key is not None):
        raise click.UsageError("give the publisher's --key, or --unsigned to check no signature")
    public = None if key is None else _key_text(key)
    counters = [read_open_counters(file.read_bytes(), public) for file in files]
    result = estimate_counts(join_open_counters(counters), EstimateQuery.parse(params))
    if as_json:
        print_json(plain(result))
        return
    by = "not checked" if public is None else "valid, by the key that was given"
    of = "1 file" if len(files) == 1 else f"{len(files)} files"
    print_lines([f"{of} of open counters; signatures: {by}", ""])
    print_estimate(result, show_anyway=show_anyway)


def _key_text(key: str) -> str:
    """Return the key of a file, or the text itself."""
    path = Path(key)
    return path.read_text(encoding="utf-8") if path.is_file() else key
