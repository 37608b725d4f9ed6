"""Simulated devices against a real server: the run fails unless the store tells the truth."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from .engines import ENGINES
from .running import Plan, run

DEVICES_A_SECOND = 500  # each has four bodies


def main() -> int:
    """Run, print what came of it; 1 if anything is wrong."""
    plan = _plan(_arguments())
    print(
        f"{plan.devices:,} devices, {plan.users} at once, for {plan.seconds} s at most, on "
        f"{plan.store}, workers: {plan.workers}",
        flush=True,
    )
    with TemporaryDirectory(prefix="veilcount-load-") as folder:
        outcome = run(plan, Path(folder))
    print(outcome)
    return 1 if outcome.failures else 0


def _plan(asked: argparse.Namespace) -> Plan:
    files = [("--html", asked.html), ("--csv", asked.csv)]
    return Plan(
        asked.store,
        asked.users,
        asked.seconds,
        asked.workers,
        asked.devices or asked.seconds * DEVICES_A_SECOND,
        asked.seed,
        asked.p99,
        tuple(word for flag, file in files if file for word in (flag, str(file.resolve()))),
    )


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="./dev load", description=__doc__)
    parser.add_argument("--store", choices=ENGINES, default="sqlite", help="sqlite is the default")
    parser.add_argument("--users", type=_some, default=32, help="devices that send at once (32)")
    parser.add_argument("--seconds", type=_some, default=10, help="ends after these at most (10)")
    parser.add_argument("--workers", type=_some, default=1, help="processes of the server (1)")
    parser.add_argument("--devices", type=_some, help=f"{DEVICES_A_SECOND} a second, unless given")
    parser.add_argument("--seed", type=int, default=1, help="of everything that is drawn (1)")
    parser.add_argument("--p99", type=float, metavar="MS", help="fail if a hundredth takes longer")
    parser.add_argument("--html", type=Path, metavar="FILE", help="locust's report")
    parser.add_argument("--csv", type=Path, metavar="PREFIX", help="locust's figures")
    return parser.parse_args()


def _some(given: str) -> int:
    number = int(given)
    if number < 1:
        raise argparse.ArgumentTypeError("give 1 or more")
    return number


if __name__ == "__main__":
    sys.exit(main())
