"""Run the tests of a module over every wrong line, in copies of the tree; print the survivors."""

from __future__ import annotations

import atexit
import os
import resource
import shutil
import signal
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from .faults import Mutant, mutants

ROOT = Path(__file__).resolve().parents[2]
WHERE = Path("shared") / "veilcount_shared"
COPIES = ROOT / "mutants" / str(os.getpid())
PYTHON_PATH = ("client", "aggregator", "shared", "")
COPIED = ("client", "aggregator", "shared", "tests", "pyproject.toml")
WORKERS = 2
SECONDS = 15  # of computing; the slowest tests here take six
BYTES = 4 << 30

PROPERTIES = "tests/properties/test_{}.py"
#: the tests of each module, the fastest to notice first
TESTS = {
    "randomness": ("randomness",),
    "epsilon": ("epsilon",),
    "periods": ("periods", "conformance"),
    "schedule": ("schedule", "periods", "conformance"),
    "mechanisms/finite_field": ("projective_geometry",),
    "mechanisms/mean": ("square_wave", "exact_privacy"),
    "mechanisms/identity": ("square_wave", "canonical"),
    "mechanisms/selection": ("selection", "subset_selection"),
    "mechanisms/projective_geometry": ("projective_geometry", "selection", "exact_privacy"),
    "mechanisms/subset_selection": (
        "subset_selection",
        "selection",
        "square_wave",
        "exact_privacy",
    ),
    "mechanisms/square_wave": ("square_wave", "exact_privacy"),
    "mechanisms/hashed_strings": ("open_strings",),
    "mechanisms/moments": ("moments",),
    "mechanisms/trend": ("trend",),
    "domain/strings": ("open_strings",),
    "domain/numbers": ("domain", "moments"),
}
KILLED, SURVIVED, TIMEOUT = "killed", "survived", "timeout"


@dataclass
class Running:
    """A fault that is being tested in one of the copies."""

    module: str
    mutant: Mutant
    copy: Path


def chosen(words: list[str]) -> list[str]:
    """Return the modules whose name or last part is given; all, where none is."""
    wanted = [name for name in TESTS if not words or {name, name.rpartition("/")[2]} & {*words}]
    if not wanted:
        sys.exit(f"no such module: choose from {', '.join(TESTS)}")
    return wanted


def copies() -> list[Path]:
    """Return fresh copies of the tree, one for each worker."""
    places = [COPIES / str(worker) for worker in range(WORKERS)]
    for place in places:
        place.mkdir(parents=True)
        for name in COPIED:
            if (ROOT / name).is_dir():
                ignored = shutil.ignore_patterns("__pycache__")
                shutil.copytree(ROOT / name, place / name, ignore=ignored)
            else:
                shutil.copy2(ROOT / name, place / name)
    return places


def put(copy: Path, module: str, source: str) -> None:
    """Write a module, and drop the bytecode of the one before, which may look like its own."""
    path = copy / WHERE / f"{module}.py"
    path.write_text(source, encoding="utf-8")
    for compiled in (path.parent / "__pycache__").glob(f"{path.stem}.*"):
        compiled.unlink()


@cache
def source_of(module: str) -> str:
    """Return a module as it was when the run began."""
    return (ROOT / WHERE / f"{module}.py").read_text(encoding="utf-8")


def start(copy: Path, module: str, *, write: bool = False) -> int:
    """Run the module's tests in a child, which inherits pytest but nothing of veilcount."""
    child = os.fork()
    if not child:
        os.chdir(copy)
        sys.path[:1] = [
            str(copy / folder) for folder in PYTHON_PATH
        ]  # before a plugin imports veilcount
        del sys.modules["tests"]  # to be found in the copy
        sys.dont_write_bytecode = not write
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS + 1))
        resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))
        silence = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silence, 1)
        os.dup2(silence, 2)
        os._exit(tested(module))
    return child


def tested(module: str) -> int:
    """Return what pytest says; 0 is a survivor, whatever else a fault that was noticed."""
    import pytest  # noqa: PLC0415 - after the fork has its own directory

    paths = [PROPERTIES.format(name) for name in TESTS[module]]
    quiet = ["-x", "-q", "--tb=no", "-p", "no:cacheprovider", "-p", "no:xdist"]
    early = ["-W", "ignore::pytest.PytestAssertRewriteWarning"]  # hypothesis is imported by now
    try:
        return int(pytest.main([*quiet, *early, "--rootdir=.", "-m", "not full", *paths]))
    except BaseException:  # noqa: BLE001 - a fault may raise anything
        return 1


def outcome(status: int) -> str:
    code = os.waitstatus_to_exitcode(status)
    if code in {-signal.SIGXCPU, -signal.SIGKILL}:
        return TIMEOUT
    return KILLED if code else SURVIVED


def alone(copy: Path, module: str, *, write: bool = False) -> str:
    return outcome(os.waitpid(start(copy, module, write=write), 0)[1])


def check(places: list[Path], module: str) -> None:
    """Fail unless the tests pass on the copy, and fail where it cannot even be imported."""
    for copy in places:
        if alone(copy, module, write=True) != SURVIVED:
            sys.exit(f"{module}: its tests do not pass as it is")
        put(copy, module, "raise ImportError\n")
        if alone(copy, module) != KILLED:
            sys.exit(f"{module}: its tests do not run the copy in {copy}")
        put(copy, module, source_of(module))


def every_outcome(
    places: list[Path], faults: list[tuple[str, Mutant]]
) -> Iterator[tuple[str, Mutant, str]]:
    """Yield what became of each fault, two at a time."""
    free, running, waiting = [*places], dict[int, Running](), [*reversed(faults)]
    while waiting or running:
        while waiting and free:
            module, mutant = waiting.pop()
            copy = free.pop()
            put(copy, module, mutant.source)
            running[start(copy, module)] = Running(module, mutant, copy)
        child, status = os.wait()
        done = running.pop(child)
        put(done.copy, done.module, source_of(done.module))
        free.append(done.copy)
        yield done.module, done.mutant, outcome(status)


def line(name: str, counts: Counter[str]) -> str:
    noticed, total = counts[KILLED] + counts[TIMEOUT], counts.total()
    figures = f"{counts[KILLED]:6} {counts[SURVIVED]:9} {counts[TIMEOUT]:8}"
    return f"{name:30} {figures} {100 * noticed / max(total, 1):8.1f} %"


def main(words: list[str]) -> None:
    """Print the survivors as they are found, then the figures."""
    modules = chosen(words)
    atexit.register(shutil.rmtree, COPIES, ignore_errors=True)
    places = copies()
    import hypothesis.strategies  # noqa: F401, PLC0415 - once, for all children
    import pytest  # noqa: F401, PLC0415 - likewise

    for module in modules:
        check(places, module)
    faults = [(module, mutant) for module in modules for mutant in mutants(source_of(module))]
    print(f"{len(faults)} wrong lines", flush=True)
    counts = {module: Counter[str]() for module in modules}
    for module, mutant, became in every_outcome(places, faults):
        counts[module][became] += 1
        if became == SURVIVED:
            print(f"\n{module}:{mutant.line} survived\n{mutant.diff}", flush=True)
    print(f"\n{'module':30} {KILLED:>6} {SURVIVED:>9} {TIMEOUT:>8} {'noticed':>10}")
    for module in modules:
        print(line(module, counts[module]))
    print(line("all", sum(counts.values(), Counter[str]())))


if __name__ == "__main__":
    main(sys.argv[1:])
