"""`veilcount doctor`: what is wrong with a deployment, and how it is mended."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
from rich.text import Text

from ..doctor import Finding, Severity, examine_backups, examine_server, examine_store, worst
from ..errors import SettingsError
from ..settings import PREFIX, Settings
from . import options, query_source
from .main import NOT_SO, WELL
from .output import tell_json, tell_lines, tell_table
from .progress import waiting

STYLES = {Severity.OK: "green", Severity.WARN: "yellow", Severity.WRONG: "bold red"}


@click.command("doctor")
@query_source.place_options
@click.option(
    "--backups",
    type=click.Path(path_type=Path),
    envvar=f"{PREFIX}BACKUPS",
    metavar="DIR",
    help="Where backups are written: the newest is read through.",
)
@options.setting_options("journal", "max_new_pseudonyms", "max_series_memory", "max_store_memory")
@click.option("--deep", is_flag=True, help="Read the whole store: counters against spent slots.")
@options.as_json
@click.pass_context
def command(
    context: click.Context,
    /,
    *,
    url: str | None,
    server: str | None,
    key: str,
    backups: Path | None,
    deep: bool,
    as_json: bool,
    **limits: Any,
) -> None:
    """Say what is wrong with a deployment, and how to mend it; exit 1 if anything is.

    A --store is looked at from within, a server's --url as devices and strangers meet it (with an
    analyst's --key, its figures too). Nothing is changed; the server counts two refused bodies.
    """
    if not (url or server or backups):
        fix = f"give a store's URL, a server's --url or both, here or as {PREFIX}STORE, {PREFIX}URL"
        raise SettingsError("--store", "", fix)
    with waiting("looking"):
        settings = Settings(url, **limits) if url else None
        findings = [
            *(_of_store(settings, backups, deep=deep) if settings else ()),
            *(examine_server(server, key, options.now) if server else ()),
            *(examine_backups(backups, options.now()) if backups else ()),
        ]
    if as_json:
        tell_json({"state": worst(findings).value, "findings": [asdict(each) for each in findings]})
    else:
        tell_table(("", "of", "check", "found"), map(_row, findings))
        tell_lines(["", _sum(findings)])
    context.exit(NOT_SO if worst(findings) is Severity.WRONG else WELL)


def _of_store(settings: Settings, backups: Path | None, *, deep: bool) -> Iterator[Finding]:
    yield from examine_store(settings, options.now, deep=deep)
    if backups is None and settings.store.startswith("sqlite:"):
        fix = "give --backups DIR, the folder that `veilcount store backup` writes to"
        yield Finding("backups", "newest", Severity.WARN, "nobody said where backups are", fix)


def _row(finding: Finding) -> tuple[Text | str, ...]:
    mark = Text(finding.state.value, STYLES[finding.state])
    fix = f"\n-> {finding.fix}" if finding.fix else ""
    return mark, finding.of, finding.check, f"{finding.what}{fix}"


def _sum(findings: Sequence[Finding]) -> str:
    counts = Counter(each.state for each in findings)
    listed = ", ".join(f"{counts[state]} {state}" for state in Severity if counts[state])
    return f"{len(findings)} finding{'s' * (len(findings) > 1)}: {listed}"
