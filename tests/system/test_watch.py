"""`veilcount watch` on a real server: a silent intake is an event, and so is its end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path

from veilcount_aggregator.records.api_keys import Role, create_key
from veilcount_aggregator.store import open_store
from veilcount_client.testing import SeededRandomSource
from veilcount_shared.report import Batch
from veilcount_shared.wire import BINARY_TYPE, encode_binary

from ..aggregator.operate.watch.receiver import Receiver, listening
from .faults.campaign import Campaign
from .server import ENDING_SECONDS, wait_until

RULES = """
[[rule]]
name = "intake"
collection = "theme"
silent = "1s"
"""


@contextmanager
def watching(folder: Path, *words: str, **environ: str) -> Iterator[Path]:
    """Run it in a folder; yield the file of what it prints, which is whole at the end."""
    command = [sys.executable, "-m", "veilcount_aggregator", "watch", *words]
    path = {"PYTHONPATH": os.pathsep.join(sys.path)}
    environ = os.environ | path | environ
    with (folder / "printed").open("wb") as printed:
        process = subprocess.Popen(command, cwd=folder, env=environ, stdout=printed)
    try:
        yield folder / "printed"
    finally:
        process.terminate()
        assert process.wait(ENDING_SECONDS) == -signal.SIGTERM


def test_a_silent_intake_is_one_event_and_its_end_another(tmp_path: Path) -> None:
    """The first delivery fails; on the terminal stands what the receiver gets."""
    campaign, receiver = Campaign.write(tmp_path), Receiver(503)
    (tmp_path / "rules.toml").write_text(RULES)
    answers = campaign.person(SeededRandomSource(1))
    store = f"sqlite:///{tmp_path / 'store.db'}"
    with campaign.serve(store) as server, listening(receiver) as webhook:
        with closing(open_store(store)) as opened:
            _, key = create_key(opened, Role.ANALYST, "", datetime.now(UTC))
        settings = {"VEILCOUNT_URL": server.url, "VEILCOUNT_KEY": key, "VEILCOUNT_WEBHOOK": webhook}
        with watching(tmp_path, "rules.toml", "--every", "0.2", **settings) as file:
            wait_until(lambda: states(receiver) == ["firing"], 60)
            body, kind = encode_binary(Batch(tuple(answers))), {"Content-Type": BINARY_TYPE}
            reply = server.ask("POST", "/v1/reports", data=body, headers=kind)
            assert reply.json()["verdicts"][:1] == ["counted"]
            wait_until(lambda: states(receiver)[:2] == ["firing", "resolved"], 60)
        printed = file.read_text().splitlines()

    for event, line in zip(receiver.accepted[:2], printed, strict=False):
        assert line == f"{event['at']} intake: {event['state']}: {event['text']}"


def states(receiver: Receiver) -> list[str]:
    return [event["state"] for event in receiver.accepted]
