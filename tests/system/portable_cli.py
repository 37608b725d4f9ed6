"""Command lines on any platform, in one process: `... portable_cli`, with a JSON list of them on
standard input. It prints the exit code, output and errors of each.
"""

from __future__ import annotations

import io
import json
import sys
from contextlib import redirect_stderr, redirect_stdout

from veilcount_aggregator.operate.cli.main import run


def result(arguments: list[str]) -> tuple[int, str, str]:
    """Run a command line."""
    with redirect_stdout(io.StringIO()) as output, redirect_stderr(io.StringIO()) as errors:
        code = run(arguments)
    return code, output.getvalue(), errors.getvalue()


if __name__ == "__main__":
    results = [result(arguments) for arguments in json.load(sys.stdin)]
    print(json.dumps(results))
