"""`veilcount store confirm-clock | restore-epochs`: retention commands."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import datetime, timedelta

import click

from ..auth import audit_log
from ..catalog.definitions import load_catalog
from ..errors import SettingsError
from ..retention.clock_guard import TOLERANCE, clock_skew
from ..retention.retention_guard import ConfirmedDay, confirm_day, read_confirmed_day
from ..series.series import Series
from ..store import Record, Store
from ..store.records import update_records
from . import options
from .main import NegativeResult
from .output import print_json, print_result, print_table

WHO = "cli"


@click.command("confirm-clock")
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
        made = confirm_day(store, now, WHO)
    line = f"{made.day} is confirmed: servers with this date drop expired rows"
    print_result({"day": str(made.day), "at": made.at}, [line], as_json=as_json)


def _differs(off: timedelta) -> str:
    seconds = off.total_seconds()
    side = "ahead of" if seconds > 0 else "behind"
    return (
        f"this machine's clock is {abs(seconds):,.0f} s {side} the store's: correct the wrong one"
    )


def _ask(found: ConfirmedDay | None, now: datetime) -> None:
    """Ask for confirmation of the current time."""
    if not sys.stdin.isatty():
        raise click.UsageError("no terminal to confirm on: compare the clock, then give --yes")
    last = "no day was confirmed before" if found is None else f"the last is {found.day}"
    if not click.confirm(f"It is {now:%Y-%m-%d %H:%M} UTC ({last}). Is that right?", err=True):
        raise NegativeResult("nothing was confirmed")


@click.command("restore-epochs")
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
        _log(store, sorted(chosen))
        restored = {
            name: max(store.restore_dropped(each) for each in series)
            for name, series in chosen.items()
        }
    if as_json:
        print_json({"restored": restored})
    else:
        print_table(("collection", "restored epochs"), restored.items())


def _chosen(store: Store, names: Sequence[str]) -> dict[str, Sequence[Series]]:
    """Return the series of the named collections, or of all."""
    named = load_catalog(store).by_name
    for name in names:
        if name not in named:
            raise SettingsError("NAME", name, "no such collection: `veilcount collections list`")
    return {name: named[name] for name in names or named}


def _log(store: Store, names: Sequence[str]) -> None:
    """Write the audit log entry before the change."""

    def decide() -> tuple[Sequence[Record], None]:
        of = " ".join(names)
        return [audit_log.audit_record(store, options.now(), WHO, "restore epochs", of)], None

    update_records(store, decide)
