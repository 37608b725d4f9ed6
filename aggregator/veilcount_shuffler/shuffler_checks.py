"""Checks of a shuffler for `veilcount shuffler doctor`. Nothing changes."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime

from veilcount_serving.findings import Check, CheckResult, Finding, examine, ok, or_ok, warn, wrong
from veilcount_shared.errors import VeilcountError

from .aggregator_client import HttpAggregator
from .crowd_limit import DiskLimit
from .crowd_states import CrowdStates
from .disk import Disk
from .errors import AggregatorAway
from .hand_over import MOST_APART
from .promise_check import check_promises
from .serve import ShufflerSettings
from .served_crowds import crowds_of
from .status import full_crowds
from .witness import Witness

TARGET = "shuffler"
_OTHERS = stat.S_IRWXG | stat.S_IRWXO


@dataclass(frozen=True, slots=True)
class ShufflerSubject:
    """What is examined."""

    settings: ShufflerSettings
    now: datetime


def examine_shuffler(settings: ShufflerSettings, now: datetime) -> Iterator[Finding]:
    """Yield the findings of a store, its witness and its aggregator."""
    yield from examine(TARGET, _CHECKS, ShufflerSubject(settings, now))


def _covers(subject: ShufflerSubject) -> Iterator[CheckResult]:
    loaded = subject.settings.stored().collections()
    try:
        check_promises(item.collection for item in loaded)
    except VeilcountError as error:
        yield wrong(
            str(error), "have the definition corrected: reports of it are hidden too little"
        )
        return
    yield ok(f"the covers of {len(loaded)} definitions keep what is promised")


def _keys(subject: ShufflerSubject) -> Iterator[CheckResult]:
    today, keys = subject.now.date(), subject.settings.stored().gateway_keys()
    serving = [key for key in keys if key.serves(today)]
    fix = "load the aggregator's relay.keys, as it is shipped with the app"
    if serving:
        yield ok(f"{len(serving)} gateway keys serve, the newest since {serving[0].start}")
    elif later := [key.start for key in keys if key.start > today]:
        yield warn(f"no gateway key serves before {min(later)}", fix)
    else:
        yield wrong("no gateway key serves", fix)


@or_ok("store and witness are their owner's alone")
def _permissions(subject: ShufflerSubject) -> Iterator[CheckResult]:
    settings = subject.settings
    for folder in filter(None, (settings.store, settings.witness)):
        if not folder.is_dir():
            continue  # a witness that is not there is the next check's
        if folder.stat().st_mode & _OTHERS or folder.stat().st_uid != os.geteuid():
            yield wrong(f"others may enter {folder}", f"chmod 700 {folder}, owned by who serves")


@or_ok("there is room on the disk")
def _space(subject: ShufflerSubject) -> Iterator[CheckResult]:
    if not DiskLimit(subject.settings.stored().crowds).has_space:
        yield wrong("the disk is too full: envelopes are answered 503", "make room")


@or_ok("no crowd is full")
def _full(subject: ShufflerSubject) -> Iterator[CheckResult]:
    stored = subject.settings.stored()
    with closing(CrowdStates(stored.crowds, Disk())) as states:
        full = full_crowds(stored, states)
    for crowd in full:
        name = f"{crowd.collection.name}, period {crowd.period}"
        fix = "ask for a definition with a `cohort`, so that fewer devices answer in a period"
        yield wrong(f"{name}: full, its further envelopes are answered 503", fix)


def _witness(subject: ShufflerSubject) -> Iterator[CheckResult]:
    settings = subject.settings
    stored = settings.stored()
    if settings.witness is None and not stored.witness_id:
        fix = "give --witness PATH on another disk, or never restore this store"
        yield warn("no witness: a restored store would hand crowds over twice", fix)
        return
    try:
        witness = Witness(settings.witness, Disk(), stored.witness_id)
    except VeilcountError as error:
        yield wrong(str(error), "mount its disk, and name it by --witness")
        return
    with closing(CrowdStates(stored.crowds, Disk())) as states:
        unknown = witness.unknown_to(states)
    if unknown:
        fix = "`serve` records its crowds as lost once, and starts after that"
        yield wrong(f"the store knows less than its witness of {len(unknown)} crowds", fix)
    else:
        yield ok("the store knows what its witness does")


@or_ok("every crowd that was due was handed over")
def _due(subject: ShufflerSubject) -> Iterator[CheckResult]:
    stored = subject.settings.stored()
    with closing(CrowdStates(stored.crowds, Disk())) as states:
        rows = {row.crowd_id: row for row in states.rows() if row.outcome is None}
    for crowd in crowds_of(stored):
        row = rows.get(crowd.crowd_id)
        if row is not None and subject.now >= crowd.leaves:
            name = f"{crowd.collection.name}, period {crowd.period}"
            fix = "see that `serve` runs, and the log for why it waits"
            yield warn(f"{name}: due since {crowd.leaves.date()}, and still here", fix)


def _aggregator(subject: ShufflerSubject) -> Iterator[CheckResult]:
    try:
        apart = abs(HttpAggregator(*subject.settings.stored().target).now() - subject.now)
    except AggregatorAway as error:
        yield wrong(str(error), "see that it runs and can be reached: crowds wait 30 days for it")
        return
    if apart > MOST_APART:
        yield wrong(f"its clock and ours are {apart} apart", "set the clocks: nothing leaves")
    else:
        yield ok("the aggregator answers, and the clocks agree")


_CHECKS: dict[str, Check[ShufflerSubject]] = {
    "covers": _covers,
    "gateway keys": _keys,
    "permissions": _permissions,
    "disk": _space,
    "crowds": _full,
    "witness": _witness,
    "hand-over": _due,
    "aggregator": _aggregator,
}
