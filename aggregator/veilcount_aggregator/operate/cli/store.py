"""`veilcount store`: check, copy, back up, restore and unlock a store; retention."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path

import click

from veilcount_analysis.series.series import Series
from veilcount_analysis.text.view_parts import Table
from veilcount_serving.errors import SettingsError

from ...records.audit_log import record_act
from ...records.clock_confirmation import confirm_day
from ...records.definitions import load_catalog
from ...releases.privacy_filter import PrivacyFilter
from ...releases.release_journal import ReleaseJournal
from ...releases.store_confirmation import unconfirmed_journals
from ...settings import PREFIX, Settings
from ...store import DurabilityState, Store, open_store
from ...store.backup import backup, restore
from ...store.migrate import CopyProgress, copy_store, outgoing_copy
from ...store.restore_lock import UNCERTAIN_LEDGER, release_lock_reason
from ...store.retention.clock_guard import TOLERANCE, clock_skew
from ...store.retention.retention_guard import ConfirmedDay, read_confirmed_day
from ...store.store_url import redact_url
from . import options
from .main import EXIT_NEGATIVE, EXIT_OK, NegativeResult
from .output import Facts, confirm_by_typing, print_result, require_terminal, spinner, status_line

AGREED, ACCEPTED, ACTOR = "destroyed", "accept", "cli"


@click.group("store")
def command() -> None:
    """Check, copy, back up and restore the store."""


@command.command("check")
@options.store
@options.as_json
@click.pass_context
def check(context: click.Context, *, url: str | None, as_json: bool) -> None:
    """Check whether reports are accepted and durable; exit 1 if not."""
    with options.opened(url) as store:
        health, left, lock = store.health(), outgoing_copy(store), release_lock_reason(store)
        journals = ", ".join(map(str, unconfirmed_journals(store)))
    facts: Facts = {
        "engine": health.engine,
        "durable": health.durable.value,
        "why": health.why,
        "fix": " ".join(f"{weakness.where}: {weakness.fix}" for weakness in health.weaknesses),
        "read_only": health.read_only,
        "copied_to": left.where if left else None,
        "releases_locked": lock,
        "trouble": health.trouble or None,
        "journals_pending": journals or None,
    }
    rows = [(name, _cell(value)) for name, value in facts.items()]
    table = Table("", ("store", redact_url(options.required_url(url))), rows)
    print_result(facts, [table], as_json=as_json)
    failing = health.read_only or health.trouble or health.durable is DurabilityState.NO
    context.exit(EXIT_NEGATIVE if failing else EXIT_OK)


@command.command("copy")
@click.argument("source", metavar="FROM", type=options.StoreUrl())
@click.argument("target", metavar="TO", type=options.StoreUrl())
@options.as_json
def copy(source: str, target: str, *, as_json: bool) -> None:
    """Copy a store into a new one, of any engine; FROM becomes read-only.

    Each is a URL, or @FILE for a file whose one line it is. Run it again to continue an interrupted
    copy.
    """
    done = CopyProgress(0, 0)
    with (
        options.opened(source) as old,
        options.opened(target, make=True) as new,
        status_line() as count,
    ):

        def progress(now: CopyProgress) -> None:
            nonlocal done
            done = now
            count(f"{now.pieces:,} pieces, {now.bytes:,} bytes")

        digest = copy_store(old, new, where=redact_url(target), progress=progress)
        new.accept_losses(options.now())  # it has what the hosts acknowledged in the old one
    facts = {"digest": digest, "pieces": done.pieces, "bytes": done.bytes}
    lines = [
        f"{done.pieces:,} pieces, {done.bytes:,} bytes; both have the digest {digest[:16]}",
        f"{redact_url(source)} is read-only: start the servers on {redact_url(target)}",
    ]
    print_result(facts, lines, as_json=as_json)


@command.command("backup")
@click.argument("to", type=click.Path(path_type=Path))
@options.store
@options.as_json
def backup_store(to: Path, *, url: str | None, as_json: bool) -> None:
    """Back up a store to a new file while it serves.

    Redis shards are read one after the other; each is read-only meanwhile, and its devices wait.
    """
    if not to.absolute().parent.is_dir():
        raise click.BadParameter(
            f"{to.parent}: no such directory: create it first", param_hint="TO"
        )
    with spinner("writing the backup"):
        backup(options.required_url(url), to)
    facts = {"file": str(to), "bytes": to.stat().st_size}
    print_result(facts, [f"{to}: {facts['bytes']:,} bytes"], as_json=as_json)


@command.command("restore")
@click.argument("backed_up", metavar="FILE", type=click.Path(path_type=Path))
@options.store
@options.as_json
def restore_backup(backed_up: Path, *, url: str | None, as_json: bool) -> None:
    """Restore a backup into a new store; central releases stay locked."""
    with spinner("reading the backup"):
        restore(backed_up, options.required_url(url))
    target = redact_url(options.required_url(url))
    facts = {"store": target, "releases_locked": True}
    print_result(facts, [f"{target} is restored; releases are locked"], as_json=as_json)


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
def unlock(*, url: str | None, journal: Path | None, as_json: bool) -> None:
    """Restore the releases that a restored store has lost, and allow new ones."""
    settings = Settings(options.required_url(url), journal=journal)
    with options.opened(url) as store:
        entered = PrivacyFilter(store, ReleaseJournal.from_settings(settings)).restore_missing(
            options.now(), ACTOR
        )
        journals = unconfirmed_journals(store)
    lines = [f"{len(entered)} releases are restored from the journal; releases are allowed"]
    if journals:
        lines.append(f"once these journals have confirmed it: {', '.join(map(str, journals))}")
    facts = {"entered": len(entered), "releases_locked": None}
    print_result(facts, lines, as_json=as_json)


@command.command("accept")
@options.store
@options.setting_option("journal")
@click.option("--yes", is_flag=True, help="Do not ask: these older data are wanted.")
@options.as_json
def accept(*, url: str | None, journal: Path | None, yes: bool, as_json: bool) -> None:
    """Accept a store that lacks acknowledged reports, after a restore that was wanted.

    Servers refuse to write to a shard that has fewer commits than they have acknowledged, and
    release nothing. Reports that are missing are lost: their devices do not send them again.
    """
    settings = Settings(options.required_url(url), journal=journal)
    with closing(open_store(settings.store, heights=settings.heights)) as store:
        store.durability()  # compares
        losses = list(store.losses())
        if not yes:
            lacks = "; ".join(losses) or "as far as this host knows, it lacks nothing"
            confirm_by_typing(
                f"WARNING: {lacks}. What is missing is lost for good once it is accepted. If its"
                " data can still be restored, restore them first. The audit log records this.",
                ACCEPTED,
                "these older data are wanted",
                flags="give --yes",
                unchanged="the store is not accepted",
            )
        store.accept_losses(options.now())
        entry = "; ".join(losses) or "nothing missing"  # an issuer's ledger is accepted by itself
        record_act(store, options.now(), ACTOR, "store accept", entry, UNCERTAIN_LEDGER)
    line = "the store is accepted as it is: servers write to it again"
    print_result({"accepted": losses}, [line], as_json=as_json)


@command.command("retire-journal")
@click.argument("id_", metavar="ID")
@options.store
@click.option(
    "--journal",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="The journal file, if it was saved: its releases are restored first.",
)
@click.option("--yes", is_flag=True, help="Do not ask: the journal is lost.")
@options.as_json
def retire_journal(
    id_: str, *, url: str | None, journal: Path | None, yes: bool, as_json: bool
) -> None:
    """Retire journal ID of a host that is gone for good: releases no longer wait for it.

    `veilcount doctor` lists the journals. Never retire the journal of a host that is only down.
    """
    with options.opened(url) as store:
        if journal is None and not yes:
            confirm_by_typing(
                f"WARNING: without its file, the releases that only journal {id_} records are lost:"
                " if the store was restored, their budget can be spent again. Give"
                " --journal FILE if the file can still be read. The audit log records this.",
                id_,
                "the file is lost",
                flags="give --journal FILE, or --yes",
                unchanged="releases still wait for this journal",
            )
        kept = None if journal is None else ReleaseJournal(journal)
        entered = PrivacyFilter(store, kept).retire(id_, options.now(), ACTOR)
    line = f"journal {id_} is retired; {len(entered)} of its releases were restored"
    print_result({"retired": id_, "entered": len(entered)}, [line], as_json=as_json)


@command.command("allow-writes")
@options.store
@click.option("--yes", is_flag=True, help="Do not ask: the copy is destroyed.")
@options.as_json
def allow_writes(*, url: str | None, yes: bool, as_json: bool) -> None:
    """End the read-only mode of a store whose copy was abandoned.

    If a server has run on the copy, reports count twice and budgets can be spent in both stores.
    Destroy the copy first.
    """
    with options.opened(url) as store:
        was = store.health().read_only
        if was and not yes:
            left = outgoing_copy(store)
            copied = f"it was copied to {left.where}" if left else "no copy is recorded"
            confirm_by_typing(
                f"WARNING: this store is read-only; {copied}. If a server has run on a copy,"
                " reports count twice from now on, and budgets can be spent in both. This cannot be"
                " undone.",
                AGREED,
                "the copy is destroyed",
                flags="destroy the copy, then give --yes",
                unchanged="the store stays read-only",
            )
        store.set_read_only(on=False)
    line = "the store accepts reports again" if was else "the store was not read-only"
    print_result({"was_read_only": was}, [line], as_json=as_json)


def _cell(value: object) -> str:
    words = {None: "", True: "yes", False: "no"}
    return words[value] if value is None or isinstance(value, bool) else str(value)


@command.command("confirm-clock")
@options.store
@click.option("--yes", is_flag=True, help="Do not ask: this machine's clock is right.")
@options.as_json
def confirm_clock(*, url: str | None, yes: bool, as_json: bool) -> None:
    """Confirm today's date, so that servers resume dropping expired rows.

    Servers stop dropping rows if the date jumps by more than two days. Run it on a machine whose
    clock is right.
    """
    with options.opened(url) as store:
        before, times, now = options.now(), store.server_times(), options.now()
        off = clock_skew(times, before, now)
        if abs(off) > TOLERANCE:
            raise NegativeResult(_differs(off))
        if not yes:
            _ask(read_confirmed_day(store), now)
        made = confirm_day(store, now, ACTOR)
    line = f"{made.day} is confirmed: servers with this date drop expired rows"
    print_result({"day": str(made.day), "at": made.at}, [line], as_json=as_json)


def _differs(off: timedelta) -> str:
    seconds = off.total_seconds()
    side = "ahead of" if seconds > 0 else "behind"
    return (
        f"this machine's clock is {abs(seconds):,.0f} s {side} the store's: correct the wrong one"
    )


def _ask(found: ConfirmedDay | None, now: datetime) -> None:
    require_terminal("compare the clock, then give --yes")
    last = "no day was confirmed before" if found is None else f"the last is {found.day}"
    if not click.confirm(f"It is {now:%Y-%m-%d %H:%M} UTC ({last}). Is that right?", err=True):
        raise NegativeResult("nothing was confirmed")


@command.command("restore-epochs")
@click.argument("names", metavar="[NAME]...", nargs=-1)
@options.store
@options.as_json
def restore_epochs(names: tuple[str, ...], *, url: str | None, as_json: bool) -> None:
    """Restore epochs dropped in the last 24 hours, of these collections or of all.

    Rows are kept for 24 hours after their epoch is dropped. After a restore reports for them are
    accepted again, and none counts twice. Servers with a right clock drop expired epochs again.
    """
    with options.opened(url) as store:
        chosen = _chosen(store, names)
        record_act(store, options.now(), ACTOR, "restore epochs", " ".join(sorted(chosen)))
        restored = {
            name: max(store.restore_dropped(one_series) for one_series in series)
            for name, series in chosen.items()
        }
    rows = [(name, str(epochs)) for name, epochs in restored.items()]
    table = Table("", ("collection", "restored epochs"), rows)
    print_result({"restored": restored}, [table], as_json=as_json)


def _chosen(store: Store, names: Sequence[str]) -> dict[str, Sequence[Series]]:
    named = load_catalog(store).by_name
    for name in names:
        if name not in named:
            raise SettingsError("NAME", name, "no such collection: `veilcount collections list`")
    return {name: named[name] for name in names or named}
