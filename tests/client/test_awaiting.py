"""The client on an event loop: it goes on, and a decision is never left behind."""

from __future__ import annotations

import asyncio
import inspect
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from veilcount_client import Client, NotAnAnswer, Person
from veilcount_client.awaiting import awaited
from veilcount_client.client import Respondent
from veilcount_client.state import ConsentDecision, StateError
from veilcount_client.state.sqlite import SqliteState
from veilcount_client.testing import ClientHarness

from .delivery.app_client import NOBODY, worker_of
from .integrations.running_campaign import COLLECTIONS, FILE

#: no state is read or written by these
IMMEDIATE = {"collections", "example", "must_ask", "person", "record", "reservation", "settings"}
TIMED = 30.0  # seconds that a test waits for a thread at most


def methods(owner: type) -> dict[str, Any]:
    return {name: value for name, value in vars(owner).items() if name[0] != "_"}


@pytest.mark.parametrize("owner", [Respondent, Client])
def test_each_call_that_may_block_has_its_coroutine(owner: type) -> None:
    """With the same parameters; `must_ask` is whether `aunasked` names anything."""
    names = methods(owner)
    blocking = names.keys() - IMMEDIATE - {"state_moved"}
    blocking = {name for name in blocking if not inspect.iscoroutinefunction(names[name])}

    assert {f"a{name}" for name in blocking} == {
        name for name in names if inspect.iscoroutinefunction(names[name])
    }
    for name in blocking - {"consented"}:
        plain, coroutine = (inspect.signature(names[each]) for each in (name, f"a{name}"))
        assert plain == coroutine, name
        assert names[f"a{name}"].__name__ == f"a{name}"


CALLS: dict[str, Callable[[Person], Coroutine[Any, Any, object]]] = {
    "aconsented": lambda person: person.aconsented(),
    "aunasked": lambda person: person.aunasked(),
    "aconsent": lambda person: person.aconsent(True, only="new"),
    "aobjecting": lambda person: person.aobjecting(),
    "arows": lambda person: person.arows(),
    "aforget": lambda person: person.aforget(),
    "areceipt": lambda person: person.areceipt("en"),
    "aexplain": lambda person: person.aexplain("theme"),
}


@contextmanager
def threads_of_the_state() -> Iterator[set[int]]:
    """Yield the threads that read or write the state's file."""
    seen: set[int] = set()

    def observed(opens: Callable[[SqliteState], Any]) -> Callable[[SqliteState], Any]:
        def call(state: SqliteState) -> Any:
            seen.add(threading.get_ident())
            return opens(state)

        return call

    with (
        patch.object(SqliteState, "_reading", observed(SqliteState._reading)),
        patch.object(SqliteState, "_writing", observed(SqliteState._writing)),
    ):
        yield seen


def test_no_call_uses_the_state_on_the_loops_thread(veilcount: ClientHarness) -> None:
    veilcount.consent = None
    person = veilcount.client(COLLECTIONS, persons=True).person("ann")
    for name, call in CALLS.items():
        with threads_of_the_state() as seen:
            asyncio.run(call(person))

        assert seen - {threading.get_ident()} == seen != set(), name
    with threads_of_the_state() as seen:
        person.consent(True)
    assert threading.get_ident() in seen  # a call that blocks is noticed


async def decide_and_look(client: Client) -> tuple[object, ...]:
    async with client:
        unasked = await client.aunasked()
        await client.aconsent(True)
        client.record("theme", "dark")
        delivered = await client.aflush()
        receipt = await client.areceipt()
        explained = await client.aexplain("theme")
        await client.aforget()
        forgotten = await client.aconsented()
    return unasked, delivered, len(receipt.entries), str(explained)[:6], forgotten


def test_a_coroutine_does_what_its_call_does(veilcount: ClientHarness) -> None:
    veilcount.consent = None
    client = veilcount.client(COLLECTIONS)

    assert asyncio.run(decide_and_look(client)) == (["theme", "minutes"], True, 2, "theme:", None)
    assert veilcount.recorded == [("theme", "dark")]
    assert client._session.is_closed


def test_a_mistake_is_raised_where_it_is_awaited(veilcount: ClientHarness) -> None:
    client = veilcount.client(COLLECTIONS)

    with pytest.raises(NotAnAnswer, match="give True or False"):
        asyncio.run(client.aconsent("no"))  # type: ignore[arg-type] # the mistake


def test_a_call_sees_the_context_of_its_caller(veilcount: ClientHarness) -> None:
    """An app's log lines carry its request's number, also from the thread."""
    request = ContextVar[int]("request")
    seen: list[int] = []

    def consent(state: SqliteState, key: bytes, decision: ConsentDecision) -> None:
        seen.append(request.get())

    async def decide(number: int) -> None:
        request.set(number)
        await client.aconsent(True)

    async def both() -> None:
        await asyncio.gather(decide(1), decide(2))

    client = veilcount.client(COLLECTIONS)
    with patch.object(SqliteState, "consent", consent):
        asyncio.run(both())

    assert sorted(seen) == [1, 2]


# -- cancelled -------------------------------------------------------------------------------------


@contextmanager
def slow_yes() -> Iterator[tuple[threading.Event, threading.Event]]:
    """Have each yes wait for an event before it is stored; yield it, and what says one waits."""
    waits, go = threading.Event(), threading.Event()
    consent = Respondent.consent

    def slowly(person: Respondent, granted: bool, **options: Any) -> None:  # noqa: FBT001
        if granted:
            waits.set()
            assert go.wait(TIMED)
        consent(person, granted, **options)

    with patch.object(Respondent, "consent", slowly):
        yield waits, go


async def yes_is_cancelled_then_no(client: Client) -> None:
    """The browser of a yes is gone; the same person says no."""
    with slow_yes() as (waits, go):
        yes = asyncio.create_task(client.aconsent(True))
        await asyncio.to_thread(waits.wait, TIMED)
        yes.cancel()
        asyncio.get_running_loop().call_later(0.05, go.set)
        with pytest.raises(asyncio.CancelledError):
            await yes
        await client.aconsent(False)
        await asyncio.to_thread(go.wait, TIMED)
    await asyncio.get_running_loop().shutdown_default_executor()


def check_that_the_no_stays(veilcount: ClientHarness) -> None:
    veilcount.consent = None
    client = veilcount.client(COLLECTIONS)
    asyncio.run(yes_is_cancelled_then_no(client))

    assert client.consented is False


def test_a_cancelled_yes_is_not_stored_after_a_later_no(veilcount: ClientHarness) -> None:
    check_that_the_no_stays(veilcount)


def test_a_call_that_goes_on_after_its_caller_is_noticed(veilcount: ClientHarness) -> None:
    """Planted: the call in a thread as asyncio has it, which a cancellation leaves behind."""
    goes_on = patch.object(Respondent, "aconsent", awaited(Respondent.consent))

    with goes_on, pytest.raises(AssertionError, match="assert True is False"):
        check_that_the_no_stays(veilcount)


def test_a_read_that_is_cancelled_does_not_wait(veilcount: ClientHarness) -> None:
    """Nor a flush: its time-out is its own, and what it stores is no decision."""
    client = veilcount.client(COLLECTIONS)
    go = threading.Event()

    async def cancelled() -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await client.aflush()
        assert not go.is_set()
        go.set()

    with patch.object(Client, "flush", lambda *_: go.wait(TIMED)):
        asyncio.run(cancelled())


def test_a_decision_that_fails_while_it_is_cancelled_is_not_logged_as_forgotten(
    veilcount: ClientHarness, caplog: pytest.LogCaptureFixture
) -> None:
    client = veilcount.client(COLLECTIONS)
    go = threading.Event()

    def fails(*_: object, **__: object) -> None:
        assert go.wait(TIMED)
        raise NotAnAnswer("no")

    async def cancelled() -> BaseException | None:
        task = asyncio.create_task(client.aconsent(True))
        await asyncio.sleep(0)
        task.cancel()
        asyncio.get_running_loop().call_later(0.05, go.set)
        with pytest.raises(asyncio.CancelledError) as raised:
            await task
        return raised.value.__cause__

    with patch.object(Respondent, "consent", fails):
        cause = asyncio.run(cancelled())

    assert isinstance(cause, NotAnAnswer)
    assert caplog.text == ""


# -- the loop ends, the process forks --------------------------------------------------------------


def test_a_loop_that_ends_waits_for_a_decision(veilcount: ClientHarness) -> None:
    """asyncio.run cancels what is left: the decision is stored when it returns."""
    veilcount.consent = None
    client = veilcount.client(COLLECTIONS)
    tasks = []

    async def leave() -> None:
        with slow_yes() as (waits, go):
            tasks.append(asyncio.create_task(client.aconsent(True)))
            await asyncio.to_thread(waits.wait, TIMED)
            asyncio.get_running_loop().call_later(0.05, go.set)

    asyncio.run(leave())

    assert tasks[0].cancelled()
    assert client.consented is True


def test_a_loop_without_threads_still_stores_a_decision(veilcount: ClientHarness) -> None:
    """A handler that runs at the very end: the executor takes nothing any more."""
    veilcount.consent = None
    client = veilcount.client(COLLECTIONS)

    async def late() -> None:
        await asyncio.get_running_loop().shutdown_default_executor()
        await client.aconsent(True)

    asyncio.run(late())

    assert client.consented is True


FORK = """
import asyncio, os, sys
from veilcount_client import Client

client = Client("NOBODY", collections="collections.toml", state_dir="state", persons=True)

async def main():
    await client.person("parent").aconsent(True)    # its thread is not in the child
    child = os.fork()
    if child:
        return os.waitpid(child, 0)[1]
    person = client.person("child")
    asyncio.run(person.aconsent(True))
    print(asyncio.run(person.aconsented()), flush=True)
    os._exit(0)

sys.exit(asyncio.run(main()))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs a system that forks")
def test_a_child_of_a_process_with_a_loop_decides_on_its_own(tmp_path: Path) -> None:
    (tmp_path / "collections.toml").write_text(FILE, encoding="utf-8")
    code = FORK.replace("NOBODY", NOBODY)
    run = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, check=True, capture_output=True, timeout=60
    )

    assert run.stdout == b"True\n"
    assert b"Traceback" not in run.stderr


def test_an_app_without_an_event_loop_does_not_load_one() -> None:
    """asyncio alone would take longer to import than the client."""
    code = "import sys, veilcount; sys.exit('asyncio' in sys.modules)"

    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# -- signals of a browser --------------------------------------------------------------------------


def test_an_objection_is_a_no_once(veilcount: ClientHarness) -> None:
    """Of who had agreed, too; what they say afterwards counts, whatever the browser sends."""
    client = veilcount.client(COLLECTIONS)
    client.record("theme", "dark")
    objecting = client.objecting()
    client.record("theme", "light")
    after, waiting = (client.consented, client.must_ask), worker_of(client).state.waiting(1e12)
    client.consent(True)
    client.objecting().record("theme", "system")

    assert objecting is client
    assert after == (False, False)
    assert waiting == 0
    assert client.consented is True
    assert veilcount.recorded == [("theme", "dark"), ("theme", "system")]


def test_an_objection_that_cannot_be_stored_records_nothing(veilcount: ClientHarness) -> None:
    """The person of that request is nobody; in the next one, with the state back, it is a no."""
    client = veilcount.client(COLLECTIONS, strict=False)
    with patch.object(SqliteState, "consent", side_effect=StateError("full")):
        client.objecting().record("theme", "dark")
    with patch.object(SqliteState, "person", side_effect=StateError("gone")):
        nobody = client.objecting()

    assert veilcount.recorded == []
    assert (nobody.consented, nobody.must_ask) == (None, False)
    assert client.consented is False
    assert client.objecting().consented is False


def test_after_forget_an_objection_counts_again(veilcount: ClientHarness) -> None:
    client = veilcount.client(COLLECTIONS)
    client.objecting()
    client.consent(True)
    client.forget()

    assert client.objecting().consented is False
