"""`veilcount audit`: claimed epsilon against a lower bound measured on this machine."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any, TypeVar

import click
from rich.console import Console
from rich.progress import track

from veilcount_analysis.audit import AuditResult
from veilcount_analysis.audit.audit_case import unaudited_reason
from veilcount_analysis.audit.batch_bugs import BATCH_BUGS
from veilcount_analysis.audit.known_bugs import BUGS
from veilcount_analysis.kinds.registry import kind_of
from veilcount_analysis.text.view_parts import Part, Table
from veilcount_shared import Collection, SystemRandomSource, load_collections

from . import options
from .audited_batches import audited_batches, batch_parts, planted_batch, planted_parts, refuted
from .main import NegativeResult
from .output import print_result

COLUMNS = ("collection", "claimed", "measured", "violated", "N", "most revealing event")
BUG_COLUMNS = ("planted bug (what it loses)", "claimed", "measured", "detected", "fixed")
LIMIT = (
    "measured is a lower confidence bound, wrong with probability alpha each: an audit can disprove"
    " a claim, never prove it"
)
SELF_TEST_ALPHA = 0.0001  # the samples of each planted bug suffice for it
_YES_NO = {True: "yes", False: "no"}

Item = TypeVar("Item")


@click.command("audit")
@click.argument("file", type=click.Path(path_type=Path), required=False)
@click.argument("name", required=False, shell_complete=options.complete_from_file)
@click.option("--self-test", is_flag=True, help="Show that planted bugs are detected.")
@click.option(
    "--samples",
    type=click.IntRange(1_000, 10**7),
    default=40_000,
    show_default=True,
    help="Messages sampled for each of two values.",
)
@click.option(
    "--alpha",
    type=options.proportion,
    default="0.0001",
    show_default=True,
    help="False positive rate for a correct mechanism.",
)
@options.as_json
def command(
    file: Path | None,
    name: str | None,
    *,
    self_test: bool,
    samples: int,
    alpha: Fraction,
    as_json: bool,
) -> None:
    """Run the client's randomizer of each collection of FILE, and bound its epsilon from below.

    Of shuffled collections, small batches with covers are enumerated exactly as well: over every
    outcome, or over classes of messages where outcomes are too many.
    Give NAME to audit one collection. Exits with 1 if a claim is violated, or if the self-test
    misses a bug.
    """
    if file is None and not self_test:
        raise click.UsageError("give FILE, or --self-test, or both")
    facts: dict[str, Any] = {"alpha": float(alpha)}
    if file is not None:
        family = load_collections(file)
        chosen = family if name is None else {name: options.find_collection(family, name)}
        facts["collections"] = [
            _audited(collection, samples, alpha)
            for collection in _with_progress(chosen.values(), "collections")
        ]
        shuffled = [c for c in chosen.values() if c.batch and c.batch.covers]
        if shuffled:
            facts["batches"] = [
                audited_batches(collection, samples, float(alpha))
                for collection in _with_progress(shuffled, "batches")
            ]
    if self_test:
        facts["self_test"] = [_caught(bug) for bug in _with_progress(BUGS, "planted bugs")]
        facts["self_test_batches"] = list(map(planted_batch, BATCH_BUGS))
    print_result(facts, _parts(facts), as_json=as_json)
    _fail_if_negative(facts)


def _with_progress(items: Iterable[Item], what: str) -> Iterable[Item]:
    """Return the items, with a progress bar on a terminal."""
    console = Console(stderr=True)
    hidden = not sys.stderr.isatty()
    return track(list(items), what, console=console, transient=True, disable=hidden)


def _audited(collection: Collection, samples: int, alpha: Fraction) -> dict[str, Any]:
    facts: dict[str, Any] = {
        "name": collection.name,
        "claimed": float(collection.unit_epsilon),
        "measured": None,
        "broken": None,
        "samples": samples,
        "event": unaudited_reason(collection),
    }
    if facts["event"]:
        return facts
    try:
        case = kind_of(collection).audit(SystemRandomSource())
        result = case.run(samples=samples, alpha=float(alpha))
    except ValueError as error:
        raise click.BadParameter(f"{error}: give more", param_hint="--samples") from error
    return facts | {"event": result.event, "measured": result.measured, "broken": result.broken}


def _caught(name: str) -> dict[str, Any]:
    bug, randomness = BUGS[name], SystemRandomSource()
    with_bug: AuditResult = bug.audit(randomness, repaired=False, alpha=SELF_TEST_ALPHA)
    without: AuditResult = bug.audit(randomness, repaired=True, alpha=SELF_TEST_ALPHA)
    return {
        "bug": name,
        "claimed": with_bug.claimed,
        "measured": with_bug.measured,
        "caught": with_bug.broken,
        "repaired": {"measured": without.measured, "broken": without.broken},
        "samples": with_bug.samples,
        "alpha": with_bug.alpha,
        "event": with_bug.event,
    }


# -- what is shown ---------------------------------------------------------------------------------


def _parts(facts: Mapping[str, Any]) -> Iterator[Part]:
    if "collections" in facts:
        yield Table("", COLUMNS, [_row(row) for row in facts["collections"]])
        yield f"{LIMIT} (alpha = {facts['alpha']:g})"
    if "batches" in facts:
        yield from batch_parts(facts["batches"], facts["alpha"])
    if "self_test" in facts:
        yield Table("", BUG_COLUMNS, [_bug_row(row) for row in facts["self_test"]])
        yield planted_parts(facts["self_test_batches"])


def _row(row: Mapping[str, Any]) -> tuple[str, ...]:
    claimed, count = f"{row['claimed']:g}", f"{row['samples']:,}"
    if row["measured"] is None:
        return row["name"], claimed, "not audited", "", "", row["event"]
    measured = f"at least {row['measured']:.3f}"
    return row["name"], claimed, measured, _YES_NO[row["broken"]], count, row["event"]


def _bug_row(row: Mapping[str, Any]) -> tuple[str, ...]:
    repaired = f"{row['repaired']['measured']:.3f}"
    if row["repaired"]["broken"]:
        repaired += ", reported as violated"
    measured = f"{row['measured']:.3f}"
    return row["bug"], f"{row['claimed']:g}", measured, _YES_NO[row["caught"]], repaired


def _fail_if_negative(facts: Mapping[str, Any]) -> None:
    broken = [row["name"] for row in facts.get("collections", ()) if row["broken"]]
    broken += refuted(facts.get("batches", ()))
    if broken:
        raise NegativeResult(
            f"claim violated: {', '.join(broken)}: do not collect before the cause is known"
        )
    failed = [
        row["bug"]
        for row in (*facts.get("self_test", ()), *facts.get("self_test_batches", ()))
        if not row["caught"] or row["repaired"]["broken"]
    ]
    if failed:
        raise NegativeResult(f"the self-test failed: {'; '.join(failed)}")
