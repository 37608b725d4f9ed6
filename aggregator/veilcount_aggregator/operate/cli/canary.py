"""`veilcount canary plan | send | result`: does a shuffler keep the order, does it drop reports?"""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from veilcount_reader.http_client import url_problem
from veilcount_serving.errors import SettingsError

from ...records.definitions import load_catalog
from ...records.gateway_keys import load_gateway_keys
from ...records.shuffler_canary_plans import add_canary_plan
from ...store import Store
from ..shuffler_canaries.canary_file import CanaryFile, merge
from ..shuffler_canaries.canary_planning import (
    default_canaries,
    draw_plan,
    enough_batches,
    gateway_keys,
    seal_canaries,
)
from ..shuffler_canaries.canary_result import LIMITS, CanaryResult, read_result
from ..shuffler_canaries.canary_sender import CanarySender, Share
from . import options
from .main import EXIT_NEGATIVE, EXIT_OK
from .output import facts_table, print_result

EXAMPLE = "https://shuffler.example.net"
FILE = click.Path(path_type=Path, exists=True, dir_okay=False)


class ShareType(click.ParamType[Share]):
    """Which share of how many, such as 2/3."""

    name = "I/N"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Share:
        """Read two numbers."""
        if isinstance(value, Share):
            return value
        with suppress(ValueError):
            number, shares = map(int, value.split("/"))
            if 1 <= number <= shares:
                return Share(number, shares)
        return self.fail(f"{value}: write it like 2/3", param, ctx)


@click.group("canary")
def command() -> None:
    """Send reports of your own through a shuffler, and see whether it keeps its word."""


@command.command("plan")
@options.name_in_store
@click.option("--to", "shuffler", required=True, metavar="URL", help="The shuffler.")
@click.option(
    "--out", type=click.Path(path_type=Path), required=True, help="Write the sealed canaries."
)
@click.option(
    "--canaries", type=options.COUNT, help="Of a batch.  [default: 30, or 3 % of its `least`]"
)
@click.option(
    "--batches", type=options.COUNT, help="The next ones.  [default: as many as the tests need]"
)
@options.store
@options.as_json
def plan(
    *,
    name: str,
    shuffler: str,
    out: Path,
    canaries: int | None,
    batches: int | None,
    url: str | None,
    as_json: bool,
) -> None:
    """Plan the canaries of the next batches, and seal them.

    They are left out of every count, and stated with each batch.
    """
    if url_problem(shuffler):
        raise SettingsError("--to", shuffler, f"give an address such as {EXAMPLE}")
    with options.opened(url) as store:
        file = _planned(store, name, shuffler=shuffler, out=out, canaries=canaries, batches=batches)
    first, last = file.batches[0].period, file.batches[-1].period
    of_batch = len(file.batches[0].canaries)
    needed = enough_batches(of_batch)
    facts = {
        "collection": name,
        "canaries": of_batch,
        "batches": len(file.batches),
        "needed": needed,
        "first": first,
        "last": last,
    }
    lines = [
        f"{of_batch} canaries in each batch of periods {first} to {last}: {out}",
        f"batches in this plan: {len(file.batches)}; both tests need {needed} of so many canaries",
        f"send them by `veilcount canary send {out}`, from several networks",
    ]
    print_result(facts, lines, as_json=as_json)


def _planned(
    store: Store, name: str, *, shuffler: str, out: Path, canaries: int | None, batches: int | None
) -> CanaryFile:
    """Write the file first: a plan without its file would keep its periods from another one."""
    by_name = load_catalog(store).by_name
    collection = options.find_collection(
        {title: rows[0].collection for title, rows in by_name.items()}, name
    )
    series, now = by_name[collection.name][0], options.now()
    number = canaries or default_canaries(series)
    keys = gateway_keys(load_gateway_keys(store))
    drawn = draw_plan(series, keys, number, batches or enough_batches(number), now)
    file = CanaryFile(
        1, name, series.fingerprint, shuffler, list(seal_canaries(series, drawn, keys))
    )
    file.create(out)
    try:
        add_canary_plan(store, series, drawn, now)
    except BaseException:
        out.unlink()
        raise
    return file


@command.command("send")
@click.argument("file", type=FILE)
@click.option(
    "--via", "proxies", multiple=True, metavar="PROXY", help="Through this proxy; repeatable."
)
@click.option(
    "--share",
    type=ShareType(),
    default=Share(),
    help="With a copy of FILE at each of N places: send this one's.  [default: all]",
)
@options.as_json
def send(file: Path, proxies: tuple[str, ...], share: Share, *, as_json: bool) -> None:
    """Send the canaries of FILE when they are due, until all are sent or their time is over.

    It may be interrupted and started again.
    """
    sent = CanarySender(file, options.now, time.sleep, proxies, share).run()
    mine = [canary for batch in sent.batches for canary in batch.canaries if share.has(canary)]
    held = sum(canary.held is not None for canary in mine)
    facts = {"canaries": len(mine), "held": held, "over": len(mine) - held}
    line = f"{held} of {len(mine)} canaries are held by the shuffler"
    print_result(facts, [line], as_json=as_json)


@command.command("result")
@click.argument("files", type=FILE, nargs=-1, required=True)
@options.store
@options.as_json
@click.pass_context
def result(
    context: click.Context, /, files: tuple[Path, ...], url: str | None, *, as_json: bool
) -> None:
    """Say whether the order is kept and whether reports are dropped, by FILES of one plan.

    Exit code 1: the order is kept, or a canary is missing.
    """
    file = merge(map(CanaryFile.load, files))
    with options.opened(url) as store:
        series = load_catalog(store).series.get(file.fingerprint)
        if series is None:
            raise SettingsError("canaries", file.collection, "this store has no such definition")
        outcome = read_result(store, series, file)
    table = facts_table(_rows(outcome), "no batches")
    print_result(_facts(outcome), [table, *outcome.sentences()], as_json=as_json)
    context.exit(EXIT_NEGATIVE if outcome.is_misconduct else EXIT_OK)


def _rows(outcome: CanaryResult) -> list[dict[str, str]]:
    return [
        {
            "period": str(batch.period),
            "batch": batch.state,
            "canaries": str(batch.planned),
            "held": str(batch.held),
            "missing": str(len(batch.missing)),
        }
        for batch in outcome.batches
    ]


def _facts(outcome: CanaryResult) -> dict[str, Any]:
    order = outcome.order
    return {
        "collection": outcome.collection,
        "order_kept": order.is_kept,
        "pairs": order.pairs,
        "inverted": order.inversions,
        "batches_missing": outcome.batches_missing,
        "held": outcome.held,
        "dropped": outcome.dropped,
        "limits": list(LIMITS),
        "batches": [asdict(batch) for batch in outcome.batches],
    }
