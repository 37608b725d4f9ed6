"""The whole client against a model, under every fault at once [hypothesis RuleBasedStateMachine].

Whatever is recorded, however the process ends, wherever it is cut and whatever the server does:
one message a slot, ever; what is charged is what was stored; no cap is exceeded; nothing leaves
without consent; of a row that the server has closed nothing is drawn or leaves once that was heard;
and once the server is well, whatever was stored and may still arrive does.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from random import randrange
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from veilcount_client.delivery import backoff
from veilcount_client.delivery.closed_rows import ClosedRows
from veilcount_client.delivery.transport import Later, Outcome
from veilcount_client.delivery.uploader import Uploader
from veilcount_client.state import DrawOutcome, QueuedReport, ReportDraw, sqlite, sqlite_commit
from veilcount_client.state.sqlite import SqliteState
from veilcount_shared.report import Report
from veilcount_shared.verdict import Verdict

from ..device_fixtures import (
    DAY,
    HOUR,
    Device,
    Wire,
    at,
    clock_at,
    file,
    minutes_of,
    pass_time,
    quick,
    secrets,
)

COLLECTIONS = file(
    day={"late": 3},
    event={"unit": "event", "per_day": 3, "linkage": "collection"},
    alone={"unit": "event", "per_day": 2, "linkage": "none"},
    last={"takes": "last"},
    kept={"presence": "hidden"},
    month={"unit": "month"},
)
NAMES = sorted(COLLECTIONS)
STEPS = (
    *("commit", "lease", "settle", "reschedule", "keep"),
    *("consent", "expire", "forget", "close_row"),
)
FAULTS: dict[str, Callable[[], Any]] = {
    "well": lambda: None,
    "offline": lambda: Later("offline", seen=False),
    "500": lambda: Later("500"),
    "429": lambda: Later("429", 7200),
}
VERDICTS = {"as it should": None, "stale": Verdict.STALE, "closed": Verdict.CLOSED}
Slot = tuple[str, bytes, int]
Row = tuple[str, bytes]
Patch = AbstractContextManager[object]


class Crash(BaseException):
    """The process is gone, here and now."""


class Life(RuleBasedStateMachine):
    """One device with all that can happen to it, and what must be true of it."""

    def __init__(self) -> None:
        """Begin on a morning in December, with a server that is well."""
        super().__init__()
        self.stack = ExitStack()
        self.place = Path(self.stack.enter_context(tempfile.TemporaryDirectory(dir=quick())))
        self.stack.enter_context(minutes_of(HOUR))
        self.stack.enter_context(secrets("machine"))
        self.stack.enter_context(self.watched())
        self.clock = clock_at(at(0, 8))
        self.wire = Wire(self.clock, during=self.leaving)
        self.consented: bool | None = True
        self.crash_in = 0
        self.messages: dict[Slot, Report] = {}
        self.stored: list[ReportDraw] = []
        self.excused: set[Slot] = set()
        self.heard: set[Row] = set()  # rows of which a reply said that they are closed
        self.closed: set[Row] = set()  # and whose report is off the outbox for it
        self.wrong: list[str] = []  # the client lets no error of ours out
        self.device = Device(self.place, COLLECTIONS, self.clock, self.wire)

    def teardown(self) -> None:
        """Once the server is well, everything that may still arrive does."""
        try:
            self.crash_in, self.wire.loses_reply = 0, False
            self.wire.mood, self.wire.verdict = FAULTS["well"], lambda _: None
            pass_time(self.clock, self.clock.now() + 2 * DAY, self.device)
            self.all_arrived()
            self.nothing_wrong_has_left()
        finally:
            self.device.stop()
            self.stack.close()

    # -- the model -----------------------------------------------------------------------------

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Cut the process between any two steps; note what was made durable."""
        with ExitStack() as stack:
            for step in STEPS:
                stack.enter_context(patch.object(SqliteState, step, self.around(step)))
            stack.enter_context(patch.object(backoff, "SPACED_CEILINGS", (HOUR,)))
            original = sqlite_commit.commit_draw

            def inside(*arguments: Any) -> DrawOutcome:
                self.tick()
                return original(*arguments)

            stack.enter_context(patch.object(sqlite, "commit_draw", inside))
            yield

    def around(self, step: str) -> Callable[..., Any]:
        """Return a step of the state that may be cut before, or after it has become durable."""
        original = getattr(SqliteState, step)

        def stepping(state: SqliteState, *arguments: Any, **more: Any) -> Any:
            self.tick()
            done = original(state, *arguments, **more)
            if step == "commit":
                pairs = zip(arguments[0], done, strict=True)
                self.see_stored([draw for draw, fate in pairs if fate is DrawOutcome.STORED])
            elif step == "settle":
                self.closed |= self.heard
            self.tick()
            return done

        return stepping

    def tick(self) -> None:
        if self.crash_in:
            self.crash_in -= 1
            if not self.crash_in:
                raise Crash

    def see_stored(self, draws: list[ReportDraw]) -> None:
        """Note what was made durable; what costs nothing only uses a slot up [`forgo`]."""
        self.stored += draws
        if any(draw.report and row_of(draw.report) in self.closed for draw in draws):
            self.wrong.append("nothing of a closed row is drawn")

    def leaving(self) -> None:
        """Look at what leaves, in the moment it does."""
        self.tick()
        reports = self.wire.attempts[-1].batch.reports
        if not self.consented:
            self.wrong.append("nothing leaves without consent")
        if any(row_of(report) in self.closed for report in reports):
            self.wrong.append("nothing of a closed row leaves")
        for report in reports:
            if self.messages.setdefault(slot_of(report), report) != report:
                self.wrong.append("one message a slot, ever")
            if self.wire.verdict(report) is not None:
                self.excused.add(slot_of(report))
            if self.wire.verdict(report) is Verdict.CLOSED and self.wire.is_heard:
                self.hear_closed(row_of(report))

    def hear_closed(self, row: Row) -> None:
        """What waits of the row may be dropped; it has to be, once the word has been kept."""
        self.heard.add(row)
        self.excused |= {slot_of(each) for each in self.reports() if row_of(each) == row}

    def reports(self) -> list[Report]:
        return [draw.report for draw in self.stored if draw.report is not None]

    def surviving(self, act: Callable[[], object]) -> None:
        """Act; where the process is cut, start another one."""
        try:
            act()
        except Crash:
            self.crash_in = 0
            self.heard = set()
            self.device.crash()
            self.device.start()
            self.consented = self.device.client.consented
            if not self.consented:
                self.excuse_all()

    def excuse_all(self) -> None:
        """A withdrawal wipes what is on its way."""
        self.excused |= set(map(slot_of, self.reports()))

    def all_arrived(self) -> None:
        """Check that whatever was stored, and was not wiped, refused or too old, is counted."""
        now = self.clock.now()
        missing = [
            draw
            for draw in self.stored
            if draw.report is not None
            and slot_of(draw.report) not in self.wire.counted.keys() | self.excused
            and draw.send_at < now - DAY < draw.expires - 2 * DAY
        ]
        assert not missing

    # -- what happens --------------------------------------------------------------------------

    @rule(name=st.sampled_from(NAMES), value=st.sampled_from([True, False, "?"]))
    def record(self, name: str, value: object) -> None:
        self.device.client.record(name, value)
        self.surviving(self.device.work)

    @rule(
        name=st.sampled_from(NAMES), then=st.sampled_from(["crash", "fork", "restart", "nothing"])
    )
    def record_in_a_hurry(self, name: str, then: str) -> None:
        self.device.client.record(name, True)
        if then != "nothing":
            getattr(self, then)()

    @rule(hours=st.sampled_from([0.1, 0.5, 1, 3, 11, 24]))
    def advance(self, hours: float) -> None:
        until = self.clock.now() + hours * HOUR
        self.surviving(lambda: pass_time(self.clock, until, self.device))

    @rule()
    def flush(self) -> None:
        self.surviving(self.device.client.flush)

    @rule()
    def restart(self) -> None:
        self.surviving(self.device.restart)

    @rule()
    def crash(self) -> None:
        self.crash_in = 0
        self.device.crash()
        self.device.start()

    @rule(steps=st.integers(1, 12))
    def crash_soon(self, steps: int) -> None:
        """The process will be cut between two of its next steps."""
        self.crash_in = steps

    @rule()
    def fork(self) -> None:
        self.surviving(self.device.fork)

    @rule(granted=st.booleans())
    def consent(self, granted: bool) -> None:  # noqa: FBT001 - a rule's arguments are named
        def ask() -> None:
            self.device.client.consent(granted)
            self.consented = granted
            if not granted:
                self.excuse_all()

        self.surviving(ask)

    @rule()
    def forget(self) -> None:
        def forget() -> None:
            self.device.client.forget()
            self.consented = None
            self.excuse_all()

        self.surviving(forget)

    @rule(fault=st.sampled_from(sorted(FAULTS)), loses_reply=st.booleans())
    def server(self, fault: str, loses_reply: bool) -> None:  # noqa: FBT001 - a rule's arguments
        self.wire.mood, self.wire.loses_reply = FAULTS[fault], loses_reply

    @rule(name=st.sampled_from(NAMES), verdict=st.sampled_from(sorted(VERDICTS)))
    def set_verdict(self, name: str, verdict: str) -> None:
        series = COLLECTIONS[name].fingerprint
        self.wire.verdict = lambda report: (
            VERDICTS[verdict] if report.fingerprint == series else None
        )

    # -- what is always true -------------------------------------------------------------------

    @invariant()
    def what_is_charged_is_what_was_stored(self) -> None:
        """The account is the sum of the draws that were made durable, to the millionth."""
        if not hasattr(self, "device") or not self.device.runs:
            return
        spent = self.device.worker.state.spent(self.device.client._session.key(""))
        for name in NAMES:
            cost = sum(draw.cost for draw in self.stored if draw.lineage == name)
            assert cost == (spent[name].life if name in spent else 0)

    @invariant()
    def nothing_wrong_has_left(self) -> None:
        """Only with consent, of what is open, and the same message in every try."""
        assert not getattr(self, "wrong", [])

    @invariant()
    def no_cap_is_exceeded(self) -> None:
        """Neither the day's nor the campaign's, and no slot is stored twice."""
        taken = list(map(slot_of, self.reports()))
        assert len(set(taken)) == len(taken)
        for name, collection in COLLECTIONS.items():
            # A draw that costs nothing sends nothing: it only uses a slot up [`forgo`].
            draws = [draw for draw in self.stored if draw.lineage == name and draw.cost]
            per_period = Counter(draw.period for draw in draws)
            assert all(count <= collection.per_period for count in per_period.values())
            assert sum(draw.cost for draw in draws) <= collection.epsilon_user * 10**6


def slot_of(report: Report) -> Slot:
    return report.fingerprint, report.pseudonym, report.slot


def row_of(report: Report) -> Row:
    return report.fingerprint, report.pseudonym


@pytest.mark.parametrize(
    ("lives", "steps"),
    [
        (25, 14),  # what is rarer is cut on purpose below
        pytest.param(2000, 40, marks=[pytest.mark.full, pytest.mark.timeout(1800)]),
    ],
)
def test_no_life_breaks_a_promise(lives: int, steps: int) -> None:
    run_state_machine_as_test(
        Life, settings=settings(max_examples=lives, stateful_step_count=steps, deadline=None)
    )


# -- lives that are written out --------------------------------------------------------------------


@contextmanager
def checked_life() -> Iterator[Life]:
    """Live, and check all promises at the end."""
    life = Life()
    try:
        yield life
        life.what_is_charged_is_what_was_stored()
        life.no_cap_is_exceeded()
        life.nothing_wrong_has_left()
    finally:
        life.teardown()


def record_and_deliver(life: Life) -> None:
    """Wherever a round is cut, what was durable arrives once and what was not costs nothing."""
    life.record("event", True)
    life.flush()
    life.record("alone", False)
    life.advance(3)


def record_and_hear_of_a_closing(life: Life) -> None:
    """The word is kept before its report is off the outbox, or another process draws again."""
    life.set_verdict("event", "closed")
    for _ in range(2):
        life.record("event", True)
        life.flush()
    life.record("event", True)

    assert sum(draw.lineage == "event" for draw in life.stored) <= 2


@pytest.mark.parametrize("live", [record_and_deliver, record_and_hear_of_a_closing])
@pytest.mark.parametrize("steps", range(1, 13))
def test_a_cut_between_any_two_steps_breaks_no_promise(
    live: Callable[[Life], None], steps: int
) -> None:
    with checked_life() as life:
        life.crash_soon(steps)
        live(life)


# -- planted bugs ----------------------------------------------------------------------------------


def keeps_no_withdrawal() -> Patch:
    """Wrong: a withdrawal is not written down, and what is on its way leaves."""
    original = SqliteState.consent

    def consent(state: SqliteState, key: bytes, granted: bool, *more: Any) -> None:  # noqa: FBT001
        if granted:
            original(state, key, granted, *more)

    return patch.object(SqliteState, "consent", consent)


def forgets_on_restart() -> Patch:
    """Wrong: a new process does not know what the last one answered."""
    original = SqliteState.__init__

    def opening(state: SqliteState, place: Path) -> None:
        original(state, place)
        with state._writing() as database:
            database.execute("delete from used")

    return patch.object(SqliteState, "__init__", opening)


def draws_at_sending() -> Patch:
    """Wrong: each try draws again."""

    def sending(uploader: Uploader, reports: list[Report]) -> Outcome:
        fresh = [replace(each, message=bytes([randrange(2)])) for each in reports]
        return original(uploader, fresh)

    original = Uploader._send
    return patch.object(Uploader, "_send", sending)


def loses_what_failed() -> Patch:
    """Wrong: what could not be sent is not tried again."""

    def put_back(
        uploader: Uploader, _: object, queued_reports: list[QueuedReport], *__: Any, **___: Any
    ) -> None:
        uploader.state.settle([each.number for each in queued_reports], {})

    return patch.object(Uploader, "_put_back", put_back)


def charges_too_late() -> Patch:
    """Wrong: the ledger is charged for what is delivered, not for what is drawn."""
    return patch.object(sqlite_commit, "charge", lambda *_: True)


def closes_no_row() -> Patch:
    """Wrong: that a row was closed is not written down."""
    return patch.object(SqliteState, "close_row", lambda *_: None)


def closes_for_records_alone() -> Patch:
    """Wrong: of a closed row nothing is drawn, but what waits leaves all the same."""
    return patch.object(ClosedRows, "holds", lambda *_: False)


def record_and_withdraw(life: Life) -> None:
    life.record("event", True)
    life.consent(granted=False)
    life.advance(3)


def record_in_two_processes(life: Life) -> None:
    life.record("event", True)
    life.restart()
    life.record("event", True)


def lose_three_replies(life: Life) -> None:
    life.server("well", loses_reply=True)
    life.record("event", True)
    for _ in range(3):
        life.flush()
        life.advance(3)


def record_after_a_close(life: Life) -> None:
    life.set_verdict("event", "closed")
    life.record("event", True)
    life.flush()
    life.restart()
    life.record("event", True)


def close_while_another_waits(life: Life) -> None:
    """Record twice, each to leave at its own time; the first hears that its row is closed."""
    life.set_verdict("event", "closed")
    life.record("event", True)
    life.record("event", True)
    life.advance(3)


def record_and_wait(life: Life) -> None:
    """Record while the server is away, and wait until it is back."""
    life.server("offline", loses_reply=False)
    life.record("event", True)
    life.flush()
    life.server("well", loses_reply=False)
    life.advance(24)


LIVES: dict[Callable[[], Patch], Callable[[Life], None]] = {
    keeps_no_withdrawal: record_and_withdraw,
    forgets_on_restart: record_in_two_processes,
    draws_at_sending: lose_three_replies,
    loses_what_failed: record_and_wait,
    charges_too_late: record_and_wait,
    closes_no_row: record_after_a_close,
    closes_for_records_alone: close_while_another_waits,
}


@pytest.mark.parametrize("bug", LIVES)
def test_a_life_that_leads_there_breaks_a_promise_only_with_the_bug(
    bug: Callable[[], Patch],
) -> None:
    with checked_life() as life:
        LIVES[bug](life)

    with bug(), pytest.raises(AssertionError), checked_life() as life:
        LIVES[bug](life)


@pytest.mark.full
@pytest.mark.parametrize("bug", list(LIVES)[:5])
def test_the_machine_finds(bug: Callable[[], Patch]) -> None:
    """A planted bug breaks a promise within a few hundred short lives."""
    quiet = settings(
        max_examples=400, stateful_step_count=14, database=None, phases=[Phase.generate]
    )
    with bug(), pytest.raises(AssertionError):
        run_state_machine_as_test(Life, settings=quiet)
