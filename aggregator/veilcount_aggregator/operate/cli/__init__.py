"""The command line: `veilcount`.

This module imports the standard library only: the base install has the command too, and it names
the missing extra.
"""

from __future__ import annotations

import sys

from .exit_codes import EXIT_INTERRUPTED, EXIT_USAGE


def main() -> None:
    """Run the command line, and exit."""
    try:
        from ...server import blas_threads  # noqa: F401, PLC0415 - before whatever imports numpy
        from .main import run  # noqa: PLC0415 - what it needs may not be there

        code = run(sys.argv[1:])
    except ModuleNotFoundError as missing:
        if (missing.name or "").startswith("veilcount"):
            raise  # a bug, not a missing extra
        sys.stderr.write(f"veilcount: needs {missing.name}: pip install 'veilcount[aggregator]'\n")
        code = EXIT_USAGE
    except KeyboardInterrupt:  # during the import
        sys.stderr.write("veilcount: stopped\n")
        code = EXIT_INTERRUPTED
    sys.exit(code)
