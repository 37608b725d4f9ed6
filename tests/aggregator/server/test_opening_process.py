"""Parts of batches are opened in a process of their own, which is bounded and replaced."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from veilcount_aggregator.intake.shuffled_batches.opening import SealedPart, open_part
from veilcount_aggregator.server import opening_process
from veilcount_aggregator.server.opening_process import OpeningProcess
from veilcount_serving.errors import Overloaded
from veilcount_shared.oblivious_http.key_config import KeyConfig
from veilcount_shared.shuffling.sealed_report import seal_report

SECRET = X25519PrivateKey.generate()
CONFIG = KeyConfig(9, SECRET.public_key().public_bytes_raw())
PLAIN = [bytes([number]) * 192 for number in range(3)]


def sealed_part() -> SealedPart:
    sealed = [seal_report(CONFIG, bytes(16), 4, plain) for plain in PLAIN]
    sealed[1] = bytes(len(sealed[1]))
    private = SECRET.private_bytes_raw()
    return SealedPart(9, private, bytes(16), 4, len(sealed[0]), 192, b"".join(sealed))


@pytest.fixture
def process() -> Iterator[OpeningProcess]:
    opening = OpeningProcess()
    yield opening
    opening.close()


def test_a_part_is_opened_as_it_is_here(process: OpeningProcess) -> None:
    part = sealed_part()
    opened = process(part)

    assert opened == open_part(part)
    assert opened.opened == b"\1\0\1"
    assert opened.plain == PLAIN[0] + bytes(192) + PLAIN[2]


def test_a_process_that_was_killed_is_replaced(process: OpeningProcess) -> None:
    process(sealed_part())
    running = process._process
    assert running is not None
    running.kill()
    running.wait()

    with pytest.raises(Overloaded):
        process(sealed_part())
    assert process(sealed_part()).opened == b"\1\0\1"


def test_one_that_hangs_is_killed(process: OpeningProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening_process, "ANSWER_SECONDS", 0.001)

    with pytest.raises(Overloaded):
        process(sealed_part())
    assert process._process is None


def test_no_more_than_a_few_parts_wait(
    process: OpeningProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    release, waiting = threading.Event(), threading.Semaphore(0)

    def hang(self: OpeningProcess, part: SealedPart) -> None:
        waiting.release()
        release.wait()

    monkeypatch.setattr(OpeningProcess, "_ask", hang)
    threads = [
        threading.Thread(target=process, args=(sealed_part(),), daemon=True)
        for _ in range(opening_process.MOST_WAITING)
    ]
    for thread in threads:
        thread.start()
    waiting.acquire()
    while process._permits._value:  # type: ignore[attr-defined] # of the standard library
        pass
    with pytest.raises(Overloaded):
        process(sealed_part())
    release.set()
    for thread in threads:
        thread.join()
