"""For all tests: a busy machine is no failure, and no module is compiled twice."""

from __future__ import annotations

import gc
import os
import shutil
import sys
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import settings

SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - what is made there has a name of its own
FREE_BYTES = 2 << 30
# Hundreds of processes are started here, and compiling what they import was most of their time.
# The source folders stay clean.
COMPILED = Path(__file__).parents[1] / ".compiled_cache"


def _has_space(folder: Path) -> bool:
    return folder.is_dir() and shutil.disk_usage(folder).free > FREE_BYTES


# Where a disk is shared, one fsync may take longer than a store is waited for. Processes end in
# tests, power does not: what is written to memory is as safe there, and as slow as it is asked for.
if _has_space(SHARED_MEMORY):
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(SHARED_MEMORY))
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # three workers on two cores wait otherwise
os.environ |= {"PYTHONPYCACHEPREFIX": str(COMPILED), "PYTHONDONTWRITEBYTECODE": ""}
sys.pycache_prefix, sys.dont_write_bytecode = str(COMPILED), False

gc.disable()  # until tests are collected: a sixth of that went into looking for garbage

settings.register_profile("steady", deadline=None, derandomize=True, max_examples=30)
settings.register_profile("full", parent=settings.get_profile("steady"), max_examples=500)


GOLDEN = (5**0.5 - 1) / 2


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark as `full` all but one in `n` cases of a test that is marked `one_in(n)`.

    Multiples of the golden ratio choose the cases, so that they spread over each parameter.
    """
    position: Counter[str] = Counter()
    for item in items:
        if (mark := next((one for one in item.own_markers if one.name == "one_in"), None)) is None:
            continue
        test = item.nodeid.partition("[")[0]
        if position[test] * GOLDEN % 1 >= 1 / mark.args[0]:
            item.add_marker("full")
        position[test] += 1


def pytest_collection_finish() -> None:
    gc.freeze()  # what is there stays to the end
    gc.enable()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the CPU time of the tests that note it, in whichever process they ran."""
    seconds = [
        float(value)
        for reports in terminalreporter.stats.values()
        for report in reports
        for name, value in getattr(report, "user_properties", ())
        if name == "cpu_seconds" and report.when == "teardown"
    ]
    if seconds:
        terminalreporter.write_line(f"combinations: {sum(seconds) / 3600:.3f} CPU-hours")


def pytest_configure(config: pytest.Config) -> None:
    """Draw more examples where slower tests are run, too."""
    settings.load_profile("steady" if "not full" in config.option.markexpr else "full")


@pytest.fixture(scope="session")
def memory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for the stores of a whole session."""
    return tmp_path_factory.mktemp("memory")
