"""`veilcount store check | copy | backup | restore | unlock | unfence`, and more."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from ..central.journal_registry import unconfirmed_journals
from ..central.privacy_filter import PrivacyFilter
from ..central.release_journal import ReleaseJournal
from ..settings import PREFIX, Settings
from ..store import DurabilityState
from ..store.backup import backup, restore
from ..store.migrate import CopyProgress, OutgoingCopy, copy_store, outgoing_copy
from ..store.restore_lock import release_lock_reason
from ..store.url_redaction import redact_url
from . import options, store_retention
from .main import NOT_SO, WELL, NotSo
from .output import Facts, tell_json, tell_lines, tell_table
from .progress import counting, waiting

AGREED = "destroyed"


@click.group("store")
def command() -> None:
    """The store: look at it, move it, keep it."""


command.add_command(store_retention.confirm_clock)
command.add_command(store_retention.restore_epochs)


@command.command("check")
@options.store
@options.as_json
@click.pass_context
def check(context: click.Context, *, url: str | None, as_json: bool) -> None:
    """Say whether reports can be taken and kept; exit 1 if not."""
    with options.opened(url) as store:
        health, left, lock = store.health(), outgoing_copy(store), release_lock_reason(store)
        journals = ", ".join(map(str, unconfirmed_journals(store)))
    facts: Facts = {
        "engine": health.engine,
        "durable": health.durable.value,
        "why": health.why,
        "fix": " ".join(f"{each.where}: {each.fix}" for each in health.weaknesses),
        "fenced": health.read_only,
        "copied_to": left.where if left else None,
        "releases_locked": lock,
        "trouble": health.trouble or None,
        "journals_pending": journals or None,
    }
    if as_json:
        tell_json(facts)
    else:
        tell_table(
            ("store", redact_url(options.required_url(url))),
            ((name, _plain(value)) for name, value in facts.items()),
        )
    failing = health.read_only or health.trouble or health.durable is DurabilityState.NO
    context.exit(NOT_SO if failing else WELL)


@command.command("copy")
@click.argument("source", metavar="FROM")
@click.argument("target", metavar="TO")
@options.as_json
def copy(source: str, target: str, *, as_json: bool) -> None:
    """Copy a store into a new one, of any engine. FROM takes no reports from then on.

    Interrupted, it goes on when it is typed again.
    """
    told = CopyProgress(0, 0)
    with (
        options.opened(source) as old,
        options.opened(target, make=True) as new,
        counting() as count,
    ):

        def progress(now: CopyProgress) -> None:
            nonlocal told
            told = now
            count(f"{now.pieces:,} pieces, {now.bytes:,} bytes")

        digest = copy_store(old, new, where=redact_url(target), progress=progress)
    if as_json:
        tell_json({"digest": digest, "pieces": told.pieces, "bytes": told.bytes})
        return
    tell_lines(
        [
            f"{told.pieces:,} pieces, {told.bytes:,} bytes; both have the digest {digest[:16]}",
            f"{redact_url(source)} is fenced: start the servers on {redact_url(target)}",
        ]
    )


@command.command("backup")
@click.argument("to", type=click.Path(path_type=Path))
@options.store
@options.as_json
def back_up(to: Path, *, url: str | None, as_json: bool) -> None:
    """Write a store's present state to a new file, while it serves.

    Of Redis it reads one shard after the other; each is fenced meanwhile, and its devices wait.
    """
    if not to.absolute().parent.is_dir():
        raise click.BadParameter(f"{to.parent}: no such folder: make it first", param_hint="TO")
    with waiting("writing the backup"):
        backup(options.required_url(url), to)
    facts = {"file": str(to), "bytes": to.stat().st_size}
    if as_json:
        tell_json(facts)
    else:
        tell_lines([f"{to}: {facts['bytes']:,} bytes"])


@command.command("restore")
@click.argument("backed_up", metavar="FILE", type=click.Path(path_type=Path))
@options.store
@options.as_json
def bring_back(backed_up: Path, *, url: str | None, as_json: bool) -> None:
    """Make a store of a backup, where there is none. Central releases stay locked."""
    with waiting("reading the backup"):
        restore(backed_up, options.required_url(url))
    if as_json:
        tell_json({"store": redact_url(options.required_url(url)), "releases_locked": True})
    else:
        tell_lines([f"{redact_url(options.required_url(url))} is restored; releases are locked"])


@command.command("unlock")
@options.store
@click.option(
    "--journal",
    type=click.Path(path_type=Path),
    envvar=f"{PREFIX}JOURNAL",
    metavar="FILE",
    help="The journal that the lock names, or those of all hosts one after the other in one file"
    " (default: the file beside a SQLite store).",
)
@options.as_json
def let_release(*, url: str | None, journal: Path | None, as_json: bool) -> None:
    """Enter again what the store forgot of central releases, and let them go on."""
    settings = Settings(options.required_url(url), journal=journal)
    with options.opened(url) as store:
        entered = PrivacyFilter(store, ReleaseJournal.of(settings)).restore_missing(
            options.now(), "cli"
        )
        journals = unconfirmed_journals(store)
    if as_json:
        tell_json({"entered": len(entered), "releases_locked": None})
        return
    tell_lines([f"{len(entered)} releases are entered again; releases go on"])
    if journals:
        tell_lines([f"once these journals have confirmed: {', '.join(map(str, journals))}"])


@command.command("retire-journal")
@click.argument("id_", metavar="ID")
@options.store
@click.option(
    "--journal",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="The journal itself, if it was saved: what it remembers is entered first.",
)
@click.option("--yes", is_flag=True, help="The journal is lost: do not ask.")
@options.as_json
def retire(id_: str, *, url: str | None, journal: Path | None, yes: bool, as_json: bool) -> None:
    """Let releases no longer wait for journal ID, of a host that is gone for good.

    `veilcount doctor` lists the journals. Never retire that of a host that is only down: start it.
    """
    with options.opened(url) as store:
        if journal is None and not yes:
            _agree_to_lose(id_)
        kept = None if journal is None else ReleaseJournal(journal)
        entered = PrivacyFilter(store, kept).retire(id_, options.now(), "cli")
    if as_json:
        tell_json({"retired": id_, "entered": len(entered)})
    else:
        tell_lines([f"journal {id_} is retired; {len(entered)} releases are entered from it"])


@command.command("unfence")
@options.store
@click.option("--yes", is_flag=True, help="The copy is destroyed: do not ask.")
@options.as_json
def unfence(*, url: str | None, yes: bool, as_json: bool) -> None:
    """Take reports again in a store whose copy was given up.

    Where a server has run on the copy, both would count: answers twice, and what one person or one
    period may spend could be spent in each. Destroy the copy first.
    """
    with options.opened(url) as store:
        was = store.health().read_only
        if was and not yes:
            _agree(outgoing_copy(store))
        store.set_read_only(on=False)
    if as_json:
        tell_json({"was_fenced": was})
    else:
        tell_lines(["the fence is lifted" if was else "there was no fence"])


def _agree_to_lose(id_: str) -> None:
    """Have a person say that a journal's file is lost."""
    warning = (
        f"WARNING: without its file, what journal {id_} alone remembers is given up: if the store"
        " came back from older files, the budget of those releases can be spent again. Give"
        " --journal FILE if the file can still be read. The audit log keeps that you did this."
    )
    tell_lines([warning], err=True)
    if not sys.stdin.isatty():
        raise click.UsageError("no terminal to ask on: give --journal FILE, or --yes")
    typed = click.prompt(f"Type {id_!r} if the file is lost", default="", err=True)
    if typed.strip() != id_:
        raise NotSo("nothing was changed: releases still wait for this journal")


def _agree(left: OutgoingCopy | None) -> None:
    """Have a person say that the copy is gone; a program says so with --yes."""
    copied = f"it was copied to {left.where}" if left else "nobody knows of a copy"
    warning = (
        f"WARNING: this store is fenced; {copied}. If a server has run there, answers are counted"
        " twice from now on, and budgets can be spent in both. Nothing can undo that."
    )
    tell_lines([warning], err=True)
    if not sys.stdin.isatty():
        raise click.UsageError("nobody is here to be asked: destroy the copy, then give --yes")
    said = click.prompt(f"Type {AGREED!r} if the copy is destroyed", default="", err=True)
    if said.strip() != AGREED:
        raise NotSo("nothing was changed: the store stays fenced")


def _plain(value: object) -> object:
    words = {None: "", True: "yes", False: "no"}
    return words[value] if value is None or isinstance(value, bool) else value
