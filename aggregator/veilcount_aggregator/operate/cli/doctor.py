"""`veilcount doctor`: check a deployment, with a fix for each problem."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
from rich.text import Text

from veilcount_issuer.issuer_checks import examine_issuer
from veilcount_issuer.worker import IssuerSettings

from ...releases.release_journal import ReleaseJournal
from ...settings import PREFIX, Settings
from ...store import store_file
from ..doctor import (
    Finding,
    Severity,
    examine_backups,
    examine_server,
    examine_sign_in,
    examine_store,
    worst,
)
from . import options, query_source
from .development_stores import missing_store
from .main import EXIT_NEGATIVE, EXIT_OK
from .options import required_url
from .output import print_json, print_lines, print_table, spinner

STYLES = {Severity.OK: "green", Severity.WARN: "yellow", Severity.WRONG: "bold red"}


@click.command("doctor")
@query_source.source_options
@click.option(
    "--backups",
    type=click.Path(path_type=Path),
    envvar=f"{PREFIX}BACKUPS",
    metavar="DIR",
    help="Directory of backups; the newest is verified.",
)
@options.setting_options(
    "journal",
    "max_new_pseudonyms",
    "max_new_pseudonyms_per_hour",
    "max_pseudonyms_per_body",
    "source_classes",
    "max_counter_memory",
    "publish",
    "sign_in",
)
@click.option(
    "--issuer",
    "issued",
    type=click.Path(path_type=Path),
    multiple=True,
    metavar="FILE",
    help="Definitions of an issuer, whose store --store is; repeatable.",
)
@click.option(
    "--keys",
    "folder",
    type=click.Path(path_type=Path),
    envvar=f"{PREFIX}ISSUER_KEYS",
    metavar="FOLDER",
    help="Folder of the issuer's private keys (default: in its store).",
)
@click.option("--deep", is_flag=True, help="Read the whole store: compare counters with ledgers.")
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
    issued: tuple[Path, ...],
    folder: Path | None,
    deep: bool,
    as_json: bool,
    **limits: Any,
) -> None:
    """Check a deployment and suggest fixes; exit 1 on any problem.

    A --store is examined from inside, a server's --url from outside, as devices and others see
    it (with an analyst's --key its metrics too). Nothing is changed; the server counts two rejected
    requests.
    """
    sign_in = limits["sign_in"]
    if not (url or server or backups or issued or sign_in):
        fix = f"give a store's URL, a server's --url or both, here or as {PREFIX}STORE, {PREFIX}URL"
        raise missing_store(fix)
    with spinner("checking"):
        settings = Settings(url, **limits) if url and not issued else None
        findings = [
            *(_of_issuer(url, issued, folder) if issued else ()),
            *(_of_store(settings, backups, deep=deep) if settings else ()),
            *(examine_server(server, key, options.now) if server else ()),
            *(_of_backups(backups, settings, limits["journal"]) if backups else ()),
            *(examine_sign_in(sign_in) if sign_in else ()),
        ]
    if as_json:
        print_json(
            {"state": worst(findings).value, "findings": [asdict(finding) for finding in findings]}
        )
    else:
        print_table(("", "target", "check", "finding"), map(_row, findings))
        print_lines(["", _summary(findings)])
    context.exit(EXIT_NEGATIVE if worst(findings) is Severity.WRONG else EXIT_OK)


def _of_store(settings: Settings, backups: Path | None, *, deep: bool) -> Iterator[Finding]:
    yield from examine_store(settings, options.now, deep=deep)
    if backups is None and store_file(settings.store):
        fix = "give --backups DIR, the directory that `veilcount store backup` writes to"
        yield Finding("backups", "newest", Severity.WARN, "no backup directory is given", fix)


def _of_backups(
    directory: Path, settings: Settings | None, journal: Path | None
) -> Iterator[Finding]:
    stored = ReleaseJournal.from_settings(settings) if settings else None
    yield from examine_backups(directory, options.now(), stored.path if stored else journal)


def _of_issuer(url: str | None, files: tuple[Path, ...], folder: Path | None) -> Iterator[Finding]:
    yield from examine_issuer(IssuerSettings(required_url(url), files, folder), options.now)


def _row(finding: Finding) -> tuple[Text | str, ...]:
    mark = Text(finding.state.value, STYLES[finding.state])
    fix = f"\n-> {finding.fix}" if finding.fix else ""
    return mark, finding.target, finding.check, f"{finding.what}{fix}"


def _summary(findings: Sequence[Finding]) -> str:
    counts = Counter(finding.state for finding in findings)
    listed = ", ".join(f"{counts[state]} {state}" for state in Severity if counts[state])
    return f"{len(findings)} finding{'s' * (len(findings) > 1)}: {listed}"
