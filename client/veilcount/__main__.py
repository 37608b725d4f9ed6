"""The command `veilcount`: the aggregator's where it is installed, else the client's.

The base install has the command too. It then offers what the client has, `doctor` and `check`, and
says what to install for the rest.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.util import find_spec

from veilcount_shared.installing import install


def main() -> None:
    """Run what was typed, and exit."""
    if find_spec("veilcount_aggregator"):
        from veilcount_aggregator.operate import cli  # noqa: PLC0415 - another distribution

        cli.main()
    sys.exit(run_client(sys.argv[1:]))


def run_client(arguments: Sequence[str]) -> int:
    """Run a command of the client; for any other, say what to install."""
    from veilcount_client.__main__ import COMMANDS, WRONG_USAGE, run  # noqa: PLC0415 - the aggregator's need none of it

    needed = install("aggregator")
    command = next(iter(arguments), "--help")
    if command in COMMANDS or command.startswith("-"):
        return run(arguments or ["--help"], program="veilcount", epilog=f"All others: {needed}")
    sys.stderr.write(f"veilcount: {command} needs the aggregator: {needed}\n")
    return WRONG_USAGE


if __name__ == "__main__":
    main()
