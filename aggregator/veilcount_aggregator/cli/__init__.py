"""The command line of operators and analysts: `veilcount`.

This module needs the standard library alone: the base install has the command too, and says what is
missing.
"""

from __future__ import annotations

import sys

WRONG_USAGE = 2
STOPPED = 130


def main() -> None:
    """Run what was typed, and exit."""
    try:
        from .. import blas_threads  # noqa: F401, PLC0415 - before whatever imports numpy
        from .main import run  # noqa: PLC0415 - what it needs may not be there

        code = run(sys.argv[1:])
    except ModuleNotFoundError as missing:
        if (missing.name or "").startswith("veilcount"):
            raise  # a defect, and no extra mends it
        sys.stderr.write(
            f"veilcount: needs {missing.name}: pip install 'veilcount[aggregator]'\n",
        )
        code = WRONG_USAGE
    except KeyboardInterrupt:  # while it was still being loaded
        sys.stderr.write("veilcount: stopped\n")
        code = STOPPED
    sys.exit(code)
