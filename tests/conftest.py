"""For all tests: a busy machine is no failure, and no module is compiled twice."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import settings

MEMORY = Path("/dev/shm")  # noqa: S108 - what is made there has a name of its own
ROOM = 1 << 30
# Hundreds of processes are started here, and compiling what they import was most of their time.
# Beside the sources nothing is written: whoever wants them clean keeps them so.
COMPILED = Path(__file__).parents[1] / ".compiled_cache"

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # three workers on two cores wait otherwise
os.environ |= {"PYTHONPYCACHEPREFIX": str(COMPILED), "PYTHONDONTWRITEBYTECODE": ""}
sys.pycache_prefix, sys.dont_write_bytecode = str(COMPILED), False

settings.register_profile("steady", deadline=None, derandomize=True, max_examples=50)
settings.register_profile("full", parent=settings.get_profile("steady"), max_examples=500)


def pytest_configure(config: pytest.Config) -> None:
    """Draw ten times as many examples where slower tests are run, too."""
    settings.load_profile("steady" if "not full" in config.option.markexpr else "full")


@pytest.fixture(scope="session")
def memory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder for stores, in memory if there is room: processes end in tests, power does not."""
    if not MEMORY.is_dir() or shutil.disk_usage(MEMORY).free < ROOM:
        yield tmp_path_factory.mktemp("memory")
        return
    with TemporaryDirectory(prefix="veilcount-", dir=MEMORY) as folder:
        yield Path(folder)
