"""A command: `python examples/command.py file dark`, `python examples/command.py telemetry on`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from veilcount.cli_kit import Telemetry

telemetry = Telemetry(
    collections=Path(__file__).with_name("collections.toml"),
    program="python examples/command.py",  # what people type
)


def convert(options: argparse.Namespace) -> int:
    """Do what the command is for."""
    telemetry.record("theme", options.theme)
    print(f"converted, {options.theme}")
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; `start` comes first, in every run."""
    telemetry.start()
    parser = argparse.ArgumentParser(description="Converts files.")
    commands = parser.add_subparsers(required=True)
    converter = commands.add_parser("file")
    converter.add_argument("theme")
    converter.set_defaults(func=convert)
    telemetry.argparse(commands)
    options = parser.parse_args(arguments)
    return int(options.func(options))


if __name__ == "__main__":
    sys.exit(main())
