"""The command line: `veilcount`, which is `veilcount-aggregator`, too."""

from __future__ import annotations

import signal
import sys


def main() -> None:
    """Run the command line, and exit."""
    try:
        from ...server import blas_threads  # noqa: F401, PLC0415 - before whatever imports numpy
        from .main import run  # noqa: PLC0415 - takes long enough to be interrupted

        code = run(sys.argv[1:])
    except KeyboardInterrupt:  # during the import
        sys.stderr.write("veilcount: stopped\n")
        code = 128 + signal.SIGINT
    sys.exit(code)
