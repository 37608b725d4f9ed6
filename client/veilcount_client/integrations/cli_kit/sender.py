"""The sender: a detached process that delivers what commands have stored.

It is the client of any app, and stays for the hour over which reports are spread. So a report of a
command leaves at the instant that it would have in an app that runs all day. To send at each start
what is overdue would join all rows of a device: by the second of their arrival, or, one report a
start, by bursts of starts.

It ends early if nothing may be due within the hour: whether something waits is as public as the
presence of who recorded. Where presence is hidden the client has something to do in each minute, so
it stays for the whole hour, whoever recorded.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

from veilcount_shared.collection import Presence

from ...client import Client
from ...delivery.transport import MAX_SECONDS
from ...delivery.uploader import OVERDUE
from ...delivery.worker import ClientWorker
from .sender_lock import SenderLock

DIRECTORY = "VEILCOUNT_SENDER"  # variable: where the lock is; set in the process of a sender alone
ACCOUNT = "VEILCOUNT_SENDER_ACCOUNT"  # variable: the one option of the client that has none
POLL = 1.0  # seconds until a withdrawn consent ends it
MARGIN = OVERDUE + MAX_SECONDS  # seconds: to start, and to send what is due at the hour's end


def main() -> None:
    """Deliver as the settings in the variables say, if no other process does."""
    lock = SenderLock(Path(os.environ.pop(DIRECTORY)))
    account = os.environ.pop(ACCOUNT, None)
    with lock.acquire() as is_ours:
        if is_ours:
            with Client(account=account) as client:
                deliver(client, lock)


def deliver(client: Client, lock: SenderLock) -> None:
    """Stay while something may be due and the person consents, an hour from the last call."""
    worker = worker_of(client)
    if worker is None:
        return
    worker.wake()
    last_call, ends = 0.0, 0.0
    while client.consented and may_send(client):
        if last_call != (last_call := lock.called_at()):
            ends = time.monotonic() + client.settings.jitter + MARGIN
        if time.monotonic() > ends:
            return
        time.sleep(POLL)


def may_send(client: Client) -> bool:
    """Whether anything may be due within the hour over which reports are spread."""
    worker = worker_of(client)
    collections = worker.uploader.collections.values() if worker else ()
    if any(collection.presence is Presence.HIDDEN for collection in collections):
        return True  # whether a sender runs must not depend on what was recorded
    due = worker.uploader.next_sending() if worker else None
    return (
        worker is not None
        and due is not None
        and due <= worker.clock.now() + client.settings.jitter
    )


def worker_of(client: Client) -> ClientWorker | None:
    """Return the worker of a client; None without a state."""
    return client._session.worker  # noqa: SLF001 - this is a part of the client
