"""`veilcount issuer accept`: issue from a ledger that may lack tokens that were issued."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import click

from veilcount_issuer.own_store import require_own_store
from veilcount_issuer.worker import IssuerSettings

from ...records.audit_log import audit_record
from ...store import Record
from ...store.records import update_records
from ...store.restore_lock import WHOLE_LEDGER
from . import options
from .confirmation import confirm_by_typing, yes_option
from .issuer_options import keys_folder
from .output import print_result

ACCEPTED = "accept"


@click.command("accept")
@options.store
@keys_folder
@yes_option
@options.as_json
def accept(url: str | None, folder: Path | None, *, yes: bool, as_json: bool) -> None:
    """Accept a ledger that may lack tokens that were issued, and issue from it.

    Nothing is issued from a store that was restored or went back, or that is newer than the keys.
    Accounts whose tokens it lacks have their caps once more, for each period that has not begun.
    """
    settings = IssuerSettings(options.required_url(url), (), folder)
    with closing(settings.open_store()) as store:
        require_own_store(store)
        store.durability()  # compares
        losses = list(store.losses())
        if not yes:
            lacks = "; ".join(losses) or "it may lack tokens that were issued"
            confirm_by_typing(
                f"WARNING: {lacks}. Once it is accepted, accounts that are missing from it can be"
                " issued tokens a second time, of each period that has not begun. If the newest"
                " ledger can still be put back, do that instead. The audit log records this.",
                ACCEPTED,
                "no token was issued under these keys, or accounts may have their caps once more",
                flags="give --yes",
                unchanged="nothing is issued",
            )
        store.accept_losses(options.now())

        def record() -> tuple[Sequence[Record], None]:
            entry = "; ".join(losses) or "may lack tokens"
            act = audit_record(store, options.now(), "cli", "issuer accept", entry)
            return [act, WHOLE_LEDGER], None

        update_records(store, record)
    line = "the ledger is accepted as it is: tokens are issued again"
    print_result({"accepted": losses}, [line], as_json=as_json)
