"""What a process keeps of the memory that it frees."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="of glibc")

#: arrays of 3 MB with a small one behind each, which stays, after one of 31 MB
FREED = """
import sys
import numpy as np
from veilcount_aggregator.server.analysis_pool.process import limit_resources, resident_megabytes

if sys.argv[1:] == ["limited"]:
    limit_resources(0)
np.ones(31 << 17)
small = []
large = [(np.ones(3 << 17), small.append(np.ones(1 << 10)))[0] for _ in range(40)]
held = resident_megabytes()
del large
print(held - resident_megabytes())
"""


@pytest.mark.parametrize(
    ("arguments", "variables", "least", "most"),
    [
        (["limited"], {}, 115, 125),
        ([], {}, -1, 20),
        (["limited"], {"MALLOC_MMAP_THRESHOLD_": str(32 << 20)}, -1, 20),
    ],
    ids=["a process of the pool", "without limits", "as the operator wants it"],
)
def test_large_arrays_are_returned_to_the_system(
    arguments: list[str], variables: dict[str, str], least: float, most: float
) -> None:
    """Of 120 MB, within what the measurement itself takes.

    What a process holds for ever counts to its replacement.
    """
    run = [sys.executable, "-c", FREED, *arguments]
    environment = os.environ | variables
    freed = float(subprocess.run(run, env=environment, check=True, capture_output=True).stdout)

    assert least <= freed <= most
