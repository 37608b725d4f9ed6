"""What processes compute and hold, as the kernel counts it [proc(5)], and what holds them up."""

from __future__ import annotations

import os
import resource
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from mmap import PAGESIZE
from pathlib import Path

HOST = "127.0.0.1"
LOWEST_PORT, PORTS = 10_000, 12_000
SYNCS = "fsync,fdatasync"
_PARENT, _TIMES = 1, slice(11, 13)  # fields behind the name, which may have spaces


def wait_until(claim: Callable[[], object], seconds: float = 120.0) -> float:
    """Wait until something is so; return how long it took, or fail: a busy machine is slow."""
    begun = time.monotonic()
    while not claim():
        assert time.monotonic() - begun < seconds, "it never came true"
        time.sleep(0.02)
    return time.monotonic() - begun


def free_port(*others: int) -> int:
    """Return a port that nobody listens on, nor on those at these distances from it.

    None of them is one that the system lends to clients [ip(7), ip_local_port_range].
    """
    while True:  # drawn, or all who look at once would find the same
        port = LOWEST_PORT + secrets.randbelow(PORTS)
        try:
            with ExitStack() as probes:
                for each in (0, *others):
                    probes.enter_context(socket.create_server((HOST, port + each)))
                return port
        except OSError:
            continue


def children(pid: int) -> list[int]:
    """Return the processes that the first thread of a process started."""
    listed = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii")
    return [int(child) for child in listed.split()]


def family(pid: int) -> list[int]:
    """Return a process and all that come from it."""
    parents = {int(path.name): _fields(int(path.name)) for path in Path("/proc").glob("[0-9]*")}
    members = [pid]
    for member in members:
        members += [
            child for child, fields in parents.items() if fields and int(fields[_PARENT]) == member
        ]
    return members


def cpu_seconds(*pids: int) -> float:
    """Return the CPU seconds of processes, of all their threads; one that is gone has none."""
    ticks = os.sysconf("SC_CLK_TCK")
    return sum(sum(map(int, fields[_TIMES])) for fields in map(_fields, pids) if fields) / ticks


def resident_bytes(pid: int) -> int:
    """Return the memory of a process, what it shares included; 0 if it is gone."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1]) * PAGESIZE
    except OSError:
        return 0


def proportional_megabytes(pid: int) -> float:
    """Return the memory of a process and all that come from it; what they share counts once."""
    rollups = [Path(f"/proc/{member}/smaps_rollup").read_text("ascii") for member in family(pid)]
    return sum(int(text.partition("\nPss:")[2].split()[0]) for text in rollups) / 1024


def status(pid: int | str, name: str) -> int:
    """Return a figure of a process's status, memory in kB; 0 if the process is gone."""
    try:
        text = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    except OSError:
        return 0
    return int(text.partition(f"\n{name}:")[2].split()[0])


def peak_megabytes(pid: int | str = "self") -> float:
    """Return the peak memory of a process; the figure of getrusage begins with the parent's."""
    return status(pid, "VmHWM") / 1024


def forget_peak() -> None:
    """Have the peak memory of this process begin at what it holds now."""
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


@contextmanager
def stopped(pids: Iterable[int]) -> Iterator[None]:
    """Stop processes in their tracks meanwhile: connections stay, nothing answers."""
    pids = list(pids)
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)


def limit_files(most: int) -> None:
    """Let no file of this process grow past so many bytes [setrlimit(2)].

    Python does not notice that a write was cut off: a compiled module would stay so.
    """
    sys.dont_write_bytecode = True
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, hard))


@contextmanager
def limited_files(most: int) -> Iterator[None]:
    """Limit the files of this process meanwhile."""
    before, _ = resource.getrlimit(resource.RLIMIT_FSIZE)
    limit_files(most)
    yield
    limit_files(before)


@contextmanager
def syncs_delayed(pids: Sequence[int], microseconds: int, log: Path) -> Iterator[None]:
    """Have each sync of these processes take longer, as on a disk that is about to fail."""
    attached = [word for pid in pids for word in ("--attach", str(pid))]
    options = [f"--trace={SYNCS}", f"--inject={SYNCS}:delay_exit={microseconds}"]
    command = ["strace", "-f", "-o", str(log), *options, *attached]
    tracer = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    try:
        wait_until(lambda: all(status(pid, "TracerPid") for pid in pids))
        yield
    finally:
        tracer.terminate()
        tracer.wait()
    assert "(DELAYED)" in log.read_text(encoding="utf-8"), "no sync was delayed"


def _fields(pid: int) -> list[str]:
    """Return the fields of a process's stat after its name; none if it is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    except OSError:
        return []
