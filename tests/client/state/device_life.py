"""One device under every fault at once, and a model of it [hypothesis RuleBasedStateMachine]."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from veilcount_client.delivery import backoff
from veilcount_client.delivery.transport import Later
from veilcount_client.state import DrawOutcome, ReportDraw, sqlite, sqlite_commit
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
    state={"measure": "trend", "changes": 1},
    back={"takes": "returning"},
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
        """Note what was made durable."""
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
        spent = self.device.worker.state.spent(self.device.client._session.consents.key(""))
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
            draws = [draw for draw in self.stored if draw.lineage == name and draw.cost]
            per_period = Counter(draw.period for draw in draws)
            assert all(count <= collection.per_day for count in per_period.values())
            assert sum(draw.cost for draw in draws) <= collection.epsilon_user * 10**6


def slot_of(report: Report) -> Slot:
    return report.fingerprint, report.pseudonym, report.slot


def row_of(report: Report) -> Row:
    return report.fingerprint, report.pseudonym


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
