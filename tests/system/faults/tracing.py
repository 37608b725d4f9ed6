"""What processes asked of the system, in order, as strace saw it: which write was on the disk when.

Strace stops a thread at the beginning and at the end of each call and writes one line for each
stop, so that the order of lines is the order in which things happened, whatever the clocks say.
"""

from __future__ import annotations

import re
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

WRITES = frozenset({"write", "writev", "pwrite64", "pwritev", "sendto", "sendmsg"})
SYNCS = frozenset({"fsync", "fdatasync"})
PAGE = 4200  # bytes of each write that are kept: a page of SQLite, and its frame

_CALL = re.compile(r"(?P<thread>\d+) +(?P<name>\w+)\(\d+<(?P<file>[^>]*)>(?P<rest>.*)")
_RESUMED = re.compile(r"(?P<thread>\d+) +<\.\.\. (?P<name>\w+) resumed>")
_ESCAPED = re.compile(r"(?:\\x[0-9a-f]{2})+")
_UNFINISHED = "<unfinished ...>"


@dataclass(slots=True)
class Call:
    """A write or a sync: of what, and at which lines it began and ended."""

    name: str
    file: str
    data: bytes
    began: int
    ended: int


@dataclass(slots=True)
class Trace:
    """All calls of some processes; filled when tracing ends."""

    calls: list[Call] = field(default_factory=list)

    def replies(self) -> list[Call]:
        """Return what was answered over HTTP, in order."""
        return [call for call in self.calls if b"HTTP/1.1 200" in call.data]

    def reply(self, verdict: bytes, times: int) -> Call:
        """Return the answer that has a verdict so many times."""
        return next(call for call in self.replies() if call.data.count(verdict) == times)

    def written(self, held: bytes) -> Call | None:
        """Return the first write to a file that holds these bytes; None: it came later."""
        writes = (call for call in self.calls if _to_file(call) and held in call.data)
        return next(writes, None)

    def durable(self, held: bytes, reply: Call) -> bool:
        """Whether what holds these bytes was written and synced before a reply began."""
        written = self.written(held)
        return written is not None and any(
            call.name in SYNCS
            and call.file == written.file
            and call.began > written.ended
            and call.ended < reply.began
            for call in self.calls
        )


@contextmanager
def tracing(pids: Sequence[int], folder: Path) -> Iterator[Trace]:
    """Trace processes with all their threads; skip where the system forbids it."""
    file, trace = folder / "trace", Trace()
    calls = ",".join(sorted(WRITES | SYNCS))
    options = ["-f", "-y", "-xx", "-s", str(PAGE), "-e", f"trace={calls}", "-o", str(file)]
    wanted = [part for pid in pids for part in ("-p", str(pid))]
    with subprocess.Popen(["strace", *options, *wanted], stderr=subprocess.PIPE) as process:
        try:
            _await_attached(process, pids)
            yield trace
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(10)
    trace.calls += parse(file.read_text(encoding="ascii").splitlines())


def parse(lines: Sequence[str]) -> list[Call]:
    """Return the calls of a trace. One that is under way at its end has not ended."""
    calls: list[Call] = []
    under_way: dict[tuple[str, str], Call] = {}
    for at, line in enumerate(lines):
        if resumed := _RESUMED.match(line):
            call = under_way.pop((resumed["thread"], resumed["name"]), None)
            if call is not None:
                call.ended = at
        elif found := _CALL.match(line):
            call = Call(found["name"], _text(found["file"]), _bytes(found["rest"]), at, at)
            calls.append(call)
            if line.endswith(_UNFINISHED):
                call.ended = len(lines)
                under_way[found["thread"], found["name"]] = call
    return calls


def _to_file(call: Call) -> bool:
    return call.name in WRITES and call.file.startswith("/")


def _bytes(text: str) -> bytes:
    return b"".join(bytes.fromhex(escaped.replace("\\x", "")) for escaped in _ESCAPED.findall(text))


def _text(name: str) -> str:
    """Return a file's name: in a trace in hexadecimal, all of it is escaped, or nothing."""
    return _bytes(name).decode() if name.startswith("\\x") else name


def _await_attached(process: subprocess.Popen[bytes], pids: Sequence[int]) -> None:
    assert process.stderr is not None
    attached = 0
    while attached < len(pids):
        line = process.stderr.readline().decode()
        if "ptrace" in line or not line:
            pytest.skip(f"this system lets nobody trace a process: {line.strip() or 'no strace'}")
        attached += "attached" in line
